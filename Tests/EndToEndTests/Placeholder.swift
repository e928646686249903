import Testing
@Suite struct EndToEndPlaceholder {}
