"""What goes wrong with jobs on EMR that the jobs themselves cannot tell."""

from collections.abc import Sequence

from eventlake.rules.errors import LakeError

_IN_MESSAGE = 5


class StepFailed(LakeError):
    """A step ended without its job having said that it is done."""

    def __init__(
        self, place: str, state: str, reason: str, logs: Sequence[str], folder: str | None
    ) -> None:
        told = [f"The job on {place} ended as {state} without having said that it was done."]
        if reason:
            told.append(f"EMR says: {reason.rstrip('.')}.")
        if logs:
            told.append(f"The end of its log: {' | '.join(logs[-_IN_MESSAGE:])}.")
        where = (
            f"Its logs are in {folder}" if folder else "Its cluster keeps no logs: set its LogUri"
        )
        told.append(f"{where}. What was published stays; the next run goes on from there.")
        super().__init__(" ".join(told))
