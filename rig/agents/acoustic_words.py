"""How English speaks of what can be heard: one row per acoustic tag. A table, and nothing else.

`sounds` name the cue itself and `states` what a listener takes it for; a policy's condition is met by one of the
former, or by one of the latter. `answers` are words of actions that such a cue usually calls for: they only break the
silence of an item without a stated policy.
"""

from __future__ import annotations

from dataclasses import dataclass

from rig.agents.lexical import stems_of


@dataclass(frozen=True)
class TagWords:
    """The vocabulary of one tag, as stems."""

    description: str
    sounds: frozenset[str]
    states: frozenset[str]
    answers: frozenset[str]


def _row(description: str, sounds: str, states: str, answers: str) -> TagWords:
    return TagWords(description, _stems(sounds), _stems(states), _stems(answers))


def _stems(words: str) -> frozenset[str]:
    return stems_of(words.split())


TAGS: dict[str, TagWords] = {
    "beeping": _row(
        "a tone is repeated regularly",
        "beep beeping buzzer bleep chirp chirping alarm alarms tone tones",
        "sounding ringing background audible machine reversing vehicle warning",
        "evacuate leave outside emergency",
    ),
    "monitor_beep": _row(
        "a bedside monitor beeps",
        "beep beeping monitor monitors bleep hospital bedside ward alarm alarms",
        "tone tones background audible machine machines medical patient",
        "bedside hospital medical ward nurse unwell treatment later",
    ),
    "co_alarm": _row(
        "an alarm sounds in groups of four, as for carbon monoxide",
        "alarm alarms detector beep beeping chirp chirping monoxide buzzer",
        "tone tones sounding ringing background audible gas",
        "evacuate leave outside air emergency fire gas rescue monoxide",
    ),
    "smoke_alarm": _row(
        "an alarm sounds in groups of three, as for smoke",
        "alarm alarms detector smoke fire beep beeping buzzer",
        "tone tones sounding ringing background audible burning",
        "evacuate leave outside emergency fire rescue smoke",
    ),
    "siren": _row(
        "a siren wails",
        "siren sirens wail wailing alarm",
        "ambulance police fire engine vehicle background passing emergency audible",
        "emergency incident ambulance police rescue evacuate",
    ),
    "keypad": _row(
        "keypad tones are audible",
        "keypad keys key touchtone dtmf digits dialling dialing pressed pressing button buttons",
        "tones entered typing background audible",
        "keypad entry typed robot automated verify machine",
    ),
    "noise_burst": _row(
        "a burst of noise covers part of the words",
        "noise static hiss interference crackle squelch masked obscured covered drowned garbled distorted burst"
        " inaudible unclear",
        "clear clearly unreadable illegible missed lost heard catch through",
        "repeat again say resend confirm",
    ),
    "cut_off": _row(
        "the caller is cut off in the middle of a word",
        "cut cuts dropped drops drop disconnect disconnected broke breaks breaking truncated unfinished incomplete"
        " interrupted lost",
        "line ends ended partway mid middle whole full finish finished heard connection through",
        "callback back call reconnect repeat again redial",
    ),
    "loud": _row(
        "the caller is loud",
        "loud louder loudly shout shouts shouting shouted raised yell yelling yells scream screaming angry"
        " anger furious",
        "irritated hostile aggressive upset forceful heated rage",
        "calm complaint supervisor manager apologise apologize deescalate",
    ),
    "whispered": _row(
        "the caller whispers",
        "whisper whispers whispering whispered hushed whispery",
        "quiet quietly low afraid fearful duress covert secret overheard listening freely openly coerced danger",
        "silent silently discreet duress police patrol danger unannounced covert yes quietly",
    ),
    "quiet": _row(
        "the caller is quiet",
        "quiet quietly soft softly faint faintly hushed",
        "low weak subdued withdrawn",
        "louder repeat volume",
    ),
    "child_voice": _row(
        "the voice is high, like a child's",
        "child child's children childs kid kids boy girl young minor underage",
        "little age small high",
        "adult parent guardian age grown grownup adults",
    ),
    "agitated": _row(
        "the caller is loud and lively, as in alarm or a hurry",
        "urgent urgency panic panicked panicking frantic frightened terrified scared alarm alarmed afraid fear fearful"
        " agitated distress distressed hurried breathless desperate",
        "fast rushed rush stress stressed shaken upset anxious hurry worried nervous strained loud emergency pressed",
        "emergency safety immediate immediately urgent hazard incident danger frightened coached ambulance scam",
    ),
    "breathy": _row(
        "the voice is breathy and unsteady, as in tears or distress",
        "breathless gasping winded tearful tears crying cry cries sob sobbing weeping trembling tremble shaky"
        " shaking quavering anxious anxiety"
        " nervous distress distressed grief",
        "upset vulnerable vulnerability shaken emotional struggling frightened fearful afraid worried confused panic",
        "afford help support care vulnerability review frightened welfare gentle",
    ),
    "blurred": _row(
        "the speech is slow and blurred",
        "slurred slur slurring slurs drowsy sluggish mumbled mumbling slow slowed slowly blurred",
        "disoriented confused confusion drunk intoxicated impaired sleepy unwell stroke weak unsteady",
        "stroke ambulance medical welfare nurse emergency collapse check poisoning",
    ),
    "exaggerated": _row(
        "the pitch swings slowly and widely, as in mockery",
        "sarcastic sarcasm mocking mockery mock ironic irony exaggerated pointed bitter scornful drawn sneering"
        " jeering",
        "insincere dissatisfied unhappy opposite annoyed joke joking meant earnest sincere displeased satisfied",
        "declined decline refund refused dissatisfaction unhappy concern concerns complaint objection turned",
    ),
    "second_voice": _row(
        "a second voice is audible",
        "prompted prompting prompts coached coaching feeding dictating talked overheard bystander prompter",
        "voice voices another second else somebody someone person people third party background different others"
        " nearby instructing whispering faint beside together adjacent",
        "private privacy alone verify coached nobody else hold scam safety concern threatened"
        " mistreated protect protection protective abuse",
    ),
    "background_noise": _row(
        "steady noise is behind the caller",
        "traffic crowd engine wind machinery noisy surroundings",
        "street background roadside road outdoors passing vehicle live moving driving workshop",
        "safe safety location away",
    ),
}

CLEAN = _stems(
    "calm normal plain clear clearly quiet quietly nothing none nobody only even settled composed relaxed steady"
    " ordinary"
    " sincere adult unhurried finished usual clean neutral matter easy genuine complete fully audible routine coherent"
    " friendly"
)
"""Words of a probe's option that says nothing unusual is to be heard."""

ROUTINE = _stems(
    "standard routine normal requested request agreed proposed asked ordinary usual process complete confirm continue"
    " book place set schedule record answer tell read log release give"
)
"""Words of an action that simply does what was asked."""

EXCEPTIONAL = _stems(
    "emergency urgent immediately suspect suspected possible hazard incident danger distress fraud scam abuse duress"
    " rescue ambulance police hold pause suspend verify lock flag alert escalate decline concern frightened coached"
    " unaccounted child vulnerable vulnerability seem sign signs repeat again callback unclear evacuate welfare"
    " dissatisfied objections fire gas chemical evacuation human colleague clarifying question private"
)
"""Words of an action that answers something out of the ordinary."""
