"""Loads a series as freqtrade's backtest does and prints what it got. Run by freqtrade's Python."""

import hashlib
import json
import sys
from pathlib import Path

from freqtrade.data.history import load_pair_history
from freqtrade.enums import CandleType

datadir, pair, timeframe = sys.argv[1:]
bars = load_pair_history(
    pair=pair,
    timeframe=timeframe,
    datadir=Path(datadir),
    candle_type=CandleType.SPOT,
    data_format="feather",
    fill_up_missing=False,
)
moments = bars["date"].dt.as_unit("ms").astype("int64").to_numpy().astype("<i8")
digest = hashlib.sha256(moments.tobytes())
for name in ("open", "high", "low", "close", "volume"):
    digest.update(bars[name].to_numpy().astype("<f8").tobytes())
print(json.dumps({"rows": len(bars), "sha256": digest.hexdigest()}))
