package signal

import (
	"bytes"
	_ "embed" // embeds schema.json
)

//go:embed schema.json
var schema []byte

// Schema returns the JSON schema (draft 2020-12) of the messages of both directions:
// $defs/ClientMessage and $defs/ServerMessage.
func Schema() []byte { return bytes.Clone(schema) }
