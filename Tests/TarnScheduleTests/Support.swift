import TarnCore

func moment(_ seconds: Int64) -> Timestamp { Timestamp(seconds: seconds)! }
