"""The enumerations and constants of fxcorepy 1.6.43 that the SDK's Python or the sidecar use."""

from .boost import enumeration

O2GSessionStatus = enumeration(
    "O2GSessionStatus",
    DISCONNECTED=0,
    CONNECTING=1,
    TRADING_SESSION_REQUESTED=2,
    CONNECTED=3,
    RECONNECTING=4,
    DISCONNECTING=5,
    SESSION_LOST=6,
    PRICE_SESSION_RECONNECTING=7,
    CONNECTED_WITH_NEED_TO_CHANGE_PASSWORD=8,
    CHART_SESSION_RECONNECTING=9,
)
O2GTableManagerStatus = enumeration(
    "O2GTableManagerStatus", TABLES_LOADING=0, TABLES_LOADED=1, TABLES_LOAD_FAILED=2
)
O2GTableStatus = enumeration("O2GTableStatus", INITIAL=0, REFRESHING=1, REFRESHED=2, FAILED=3)
O2GTableType = enumeration(
    "O2GTableType",
    TABLE_UNKNOWN=-1,
    OFFERS=0,
    ACCOUNTS=1,
    ORDERS=2,
    TRADES=3,
    CLOSED_TRADES=4,
    MESSAGES=5,
    SUMMARY=6,
)
O2GTableUpdateType = enumeration(
    "O2GTableUpdateType", UPDATE_UNKNOWN=-1, INSERT=0, UPDATE=1, DELETE=2
)
O2GTableManagerMode = enumeration("O2GTableManagerMode", NO=0, YES=1)
O2GCandleOpenPriceMode = enumeration("O2GCandleOpenPriceMode", PREVIOUS_CLOSE=0, FIRST_TICK=1)
O2GTimeFrameUnit = enumeration(
    "O2GTimeFrameUnit", TICK=0, MIN=1, HOUR=2, DAY=3, WEEK=4, MONTH=5, YEAR=6
)
O2GResponseType = enumeration(
    "O2GResponseType",
    RESPONSE_UNKNOWN=-1,
    TABLES_UPDATES=0,
    MARKET_DATA_SNAPSHOT=1,
    GET_ACCOUNTS=2,
    GET_OFFERS=3,
    GET_ORDERS=4,
    GET_TRADES=5,
    GET_CLOSED_TRADES=6,
    GET_MESSAGES=7,
    CREATE_ORDER_RESPONSE=8,
    GET_SYSTEM_PROPERTIES=9,
    COMMAND_RESPONSE=10,
    MARGIN_REQUIREMENTS_RESPONSE=11,
    GET_LAST_ORDER_UPDATE=12,
    MARKET_DATA=13,
    LEVEL2_MARKET_DATA=14,
)
O2GRequestParamsEnum = enumeration(
    "O2GRequestParamsEnum", COMMAND=1, OFFER_ID=3, SUBSCRIPTION_STATUS=26
)


class Constants:
    BUY = "B"
    SELL = "S"

    class Commands:
        CREATE_ORDER = "CreateOrder"
        SET_SUBSCRIPTION_STATUS = "SetSubscriptionStatus"

    class SubscriptionStatuses:
        DISABLE = "D"
        TRADABLE = "T"
        VIEW_ONLY = "V"
