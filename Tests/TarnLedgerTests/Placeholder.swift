import Testing
@Suite struct TarnLedgerPlaceholder {}
