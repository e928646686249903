import Testing
@Suite struct TarnTransferPlaceholder {}
