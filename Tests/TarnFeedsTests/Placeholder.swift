import Testing
@Suite struct TarnFeedsPlaceholder {}
