import Testing
@Suite struct TarnCorePlaceholder {}
