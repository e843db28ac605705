// Package presence is the state of participants and publications as the others in a room see them. The home of a
// participant, this node or another, makes no difference here. Values belong to the goroutine of the room.
package presence
