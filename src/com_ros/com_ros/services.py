"""Services that no request ends: what the callback cannot do is refused with the reason.

rclpy ends a node for an exception in a service's callback, its own included: a ParameterValue of
an unknown type in one call of set_parameters is enough.
"""

from collections.abc import Callable
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.parameter import Parameter

from com_model.exceptions import ComModelError

TYPES = {kind.value for kind in Parameter.Type}


def answering(
    kind: type,
    callback: Callable[[Any, Any], Any],
    report: Callable[[Exception], None],
) -> Callable[[Any, Any], Any]:
    """Makes a callback that always answers.

    Args:
        kind: type of the service.
        callback: of a request and an empty response; returns the response.
        report: called with each exception of the callback.

    Returns:
        A callback whose response, after an exception, is a refusal. A ComModelError is
        no bug: it is not reported.
    """

    def answer(request: Any, response: Any) -> Any:
        if reason := unknown_types(request):
            return refuse(request, response, reason)
        try:
            return callback(request, response)
        except ComModelError as error:
            return refuse(request, kind.Response(), str(error))  # type: ignore[attr-defined]
        except Exception as error:
            report(error)
            reason = f"{type(error).__name__}: {error}"
            return refuse(request, kind.Response(), reason)  # type: ignore[attr-defined]

    return answer


def unknown_types(request: Any) -> str:
    """Which values of a request to set parameters have a type that ROS does not have.

    Args:
        request: of any service.

    Returns:
        The reason to refuse it; empty: there is none.
    """
    if not isinstance(request, SetParameters.Request | SetParametersAtomically.Request):
        return ""
    wrong = [p for p in request.parameters if p.value.type not in TYPES]
    return "; ".join(
        f"{p.name!r}: the type {p.value.type} of its value does not exist: give 0 to {max(TYPES)}"
        for p in wrong[:3]
    )


def refuse(request: Any, response: Any, reason: str) -> Any:
    """Fills a response that refuses a request.

    Args:
        request: of any service.
        response: its empty response; one that has no field for a refusal stays empty.
        reason: why, and what to give.

    Returns:
        The response.
    """
    refused = SetParametersResult(successful=False, reason=reason)
    if isinstance(response, SetParameters.Response):
        response.results = [refused] * len(request.parameters)
    elif isinstance(response, SetParametersAtomically.Response):
        response.result = refused
    for name in {"message", "reason"} & response.get_fields_and_field_types().keys():
        setattr(response, name, reason)
    return response
