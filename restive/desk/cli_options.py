"""Options that several verbs of `restive desk` take: the store, rules of a program, and how a table is read."""

from typing import Annotated

import typer

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="RESTIVE_STORE",
        help="A FILE.db or postgresql://user@host/database.",
        show_default="a file in your data folder, see `restive desk list`",
    ),
]
SpendOption = Annotated[str | None, typer.Option(help="`exactly`, or `at most`: only where a gain is expected.")]
CostUnitOption = Annotated[
    str | None, typer.Option(help="People cost different amounts of the budget, in this unit: km, euros.")
]
StatesAreOutcomes = Annotated[
    bool | None, typer.Option(help="The states of a round are also the outcomes of the round before.")
]
CoolDownOption = Annotated[int | None, typer.Option(help="Number of rounds within which nobody is chosen twice.")]
TimezoneOption = Annotated[str | None, typer.Option(help="The time zone of dates and times, such as Asia/Kolkata.")]
RhythmOption = Annotated[
    str | None, typer.Option(help="A list is due every `day`, `week`, `two weeks`, `month` or `10 days`; or `none`.")
]
FirstDueOption = Annotated[
    str | None,
    typer.Option(help="The first due date, such as 2026-11-23.", show_default="the day of the first decision"),
]
ColumnOption = Annotated[
    list[str] | None, typer.Option(help="A column that has another name: agent=customer_id; repeatable, remembered.")
]
ValueOption = Annotated[
    list[str] | None, typer.Option(help="A text that means a state: aktiv=active; repeatable, remembered.")
]
CutPointsOption = Annotated[
    str | None, typer.Option(help="States by a number: `days_since_order: 30, 90, more is worse`, or none; remembered.")
]
PhoneCountryOption = Annotated[
    int | None, typer.Option(help="Ids are phone numbers of this calling code, such as 91; 0: they are not.")
]
