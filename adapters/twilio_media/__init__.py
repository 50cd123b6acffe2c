"""Twilio Media Streams with the rig in Twilio's place: so far the playback model, not yet a dialect."""
