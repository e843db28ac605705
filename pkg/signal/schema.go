package signal

import (
	"bytes"
	_ "embed" // carries schema.json
)

//go:embed schema.json
var schema []byte

// Schema gives the JSON schema (draft 2020-12) of every message of both directions: $defs/ClientMessage and $defs/ServerMessage.
func Schema() []byte { return bytes.Clone(schema) }
