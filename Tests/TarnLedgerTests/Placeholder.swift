import Testing

@Suite struct LedgerPlaceholder {}
