"""The shape of a problem (RFC 9457)."""

from pydantic import BaseModel, ConfigDict, Field


class FieldError(BaseModel):
    """One thing that is wrong with one field."""

    field: str = Field(description="The field, its parents before it: `schedule.interval_ms`")
    reason: str = Field(description="What is wrong, for people")
    code: str = Field(description="What is wrong, for programs")
    near: list[str] = Field(default_factory=list, description="Known values that look like it")


class Problem(BaseModel):
    """Why a request was not done."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:collector:problem:unknown_symbol",
                    "title": "Cannot be processed",
                    "status": 422,
                    "detail": "binance lists no 'BTC/USDX'; did you mean BTC/USDT?",
                    "code": "unknown_symbol",
                    "errors": [
                        {
                            "field": "symbol",
                            "reason": "binance lists no 'BTC/USDX'; did you mean BTC/USDT?",
                            "code": "unknown_symbol",
                            "near": ["BTC/USDT"],
                        }
                    ],
                }
            ]
        }
    )

    type: str = Field(description="A URI that names the kind of problem")
    title: str = Field(description="The kind of problem, for people")
    status: int = Field(description="The HTTP status")
    detail: str = Field(description="What happened this time")
    code: str = Field(description="What happened, for programs; listed in docs/errors.md")
    errors: list[FieldError] = Field(
        default_factory=list, description="The fields that are to blame"
    )
    parts: dict[str, str] | None = Field(
        default=None, description="Only of /readyz: the result of each part"
    )
