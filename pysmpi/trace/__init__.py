"""The events of a run: the recorder, the recorded form, and the formats of traces.

`events` has the records, `recorder` makes them during a run, `model` is a recording in memory,
`formats` the registry of formats.
"""
