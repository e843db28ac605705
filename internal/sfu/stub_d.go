package sfu

import "encoding/json"

type SessionState struct {
	Identity, Session string
	Epoch             uint64
	State             []byte
}

type SessionRecord struct{ X int }

func DecodeSessionRecord(data []byte) (*SessionRecord, error) {
	c := new(SessionRecord)
	return c, json.Unmarshal(data, c)
}

func (n *Node) TellSessions() {}
