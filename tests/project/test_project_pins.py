"""Everything that is installed is pinned, by version alone."""

from __future__ import annotations

import re
from pathlib import Path


def test_every_dependency_is_pinned_exactly(repo_dir: Path) -> None:
    lines = [
        line for line in (repo_dir / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")
    ]
    assert len(lines) > 100
    for line in lines:
        # No address: what is installed comes from whatever index its user trusts.
        assert re.match(r"^[a-z0-9][a-z0-9._-]*==[0-9][^ ;]*( ;[^#]*)?( +# via .*)?$", line), line
        assert "://" not in line
