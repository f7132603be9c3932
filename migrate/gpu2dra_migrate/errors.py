"""What can go wrong with one file: its text, the edit of it, or the proof of the edit."""

from __future__ import annotations

# Codes of `gpu2dra.codes.CODES` that the text editor can end with.
NO_ROOM_FOR_DOCUMENT = "DRA105"  # the file cannot take another document; the caller writes one beside it
LAYOUT = "DRA513"  # a layout that the editor does not change
ALIAS = "DRA506"
MERGE_KEY = "DRA507"
DUPLICATE_KEY = "DRA508"


class FileError(Exception):
    """One file could not be read, edited or proven; the others are still worth doing.

    The arguments of a subclass are its fields, so that it survives the way between processes.
    """


class YamlSyntaxError(FileError):
    """The text is no YAML stream; `line` and `column` are 1-based, `problem` is a short text without a position."""

    def __init__(self, line: int, column: int, problem: str) -> None:
        super().__init__(line, column, problem)
        self.line = line
        self.column = column
        self.problem = problem

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.problem}"


class CannotEdit(FileError):
    """The operations are sound, but the text at this place is not one that can be edited without harm."""

    def __init__(self, code: str, message: str, line: int, column: int) -> None:
        super().__init__(code, message, line, column)
        self.code = code
        self.message = message
        self.line = line
        self.column = column

    def __str__(self) -> str:
        return f"{self.code} at line {self.line}, column {self.column}: {self.message}"


class ProofFailed(FileError):
    """The edited text is not what the operations ask for; `which` names the check, `detail` what differs."""

    def __init__(self, which: str, detail: str) -> None:
        super().__init__(which, detail)
        self.which = which
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.which}: {self.detail}"
