"""A strategy for freqtrade, run by freqtrade: buys after three bars up, sells after two down."""

from freqtrade.strategy import IStrategy


class ThreeUp(IStrategy):
    INTERFACE_VERSION = 3
    timeframe = "5m"
    minimal_roi = {"0": 10.0}  # noqa: RUF012 - freqtrade's own form
    stoploss = -0.99
    startup_candle_count = 5

    def populate_indicators(self, dataframe, metadata):
        return dataframe

    def populate_entry_trend(self, dataframe, metadata):
        up = dataframe["close"] > dataframe["open"]
        dataframe.loc[up & up.shift(1) & up.shift(2), "enter_long"] = 1
        return dataframe

    def populate_exit_trend(self, dataframe, metadata):
        down = dataframe["close"] < dataframe["open"]
        dataframe.loc[down & down.shift(1), "exit_long"] = 1
        return dataframe
