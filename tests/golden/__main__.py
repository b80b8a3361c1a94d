"""`make golden`: writes the golden traces anew."""

from tests.test_golden_traces import GOLDEN, golden_text

for name in GOLDEN:
    GOLDEN[name].write_text(golden_text(name), encoding="utf-8")
    print(GOLDEN[name])
