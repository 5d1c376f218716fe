"""Answers for the scripted engine."""


def chatter(prompt: str) -> str:
    """What an unguided chat model likes to say."""
    return "Sure! <b>Here</b> it is."
