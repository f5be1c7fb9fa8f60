"""Runs a benchmark's cases in several processes, with a progress bar."""

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_processes(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    label: str = "",
    processes: int = 2,
) -> list[Result]:
    """Calls a function of a module with each item, several at a time; results in their order.

    Args:
        function: Found by its name in a new process: no lambda, no inner function.
        items: What it takes.
        label: Stands before the progress bar.
        processes: So many at a time; 1: in this process.
    """
    items = list(items)
    console = Console(stderr=True)
    columns = (
        TextColumn(label),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    results: dict[int, Result] = {}
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(label, total=len(items))
        if processes <= 1:
            for i, item in enumerate(items):
                results[i] = function(item)
                progress.advance(task)
        else:
            with ProcessPoolExecutor(
                processes, mp_context=get_context("spawn")
            ) as pool:
                futures = {
                    pool.submit(function, item): i for i, item in enumerate(items)
                }
                for future in as_completed(futures):
                    results[futures[future]] = future.result()
                    progress.advance(task)
    return [results[i] for i in range(len(items))]
