"""`make golden`: writes the golden traces, and the golden debugging session, anew."""

from tests.golden.debug_session import COMMANDS, EXPECTED, debug_text
from tests.test_golden_traces import GOLDEN, golden_text

for name in GOLDEN:
    GOLDEN[name].write_text(golden_text(name), encoding="utf-8")
    print(GOLDEN[name])

EXPECTED.write_text(debug_text(COMMANDS.read_text(encoding="utf-8")), encoding="utf-8")
print(EXPECTED)
