package signal

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const documentPath = "../../docs/signalling.md"

var example = regexp.MustCompile("(?ms)^```json (client|server)\n(.*?)^```$")

func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(documentPath)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDocumentExamples decodes every example to the Go types, which must know every key, and
// encodes it to the same JSON.
func TestDocumentExamples(t *testing.T) {
	text := document(t)
	found := example.FindAllStringSubmatch(text, -1)
	if blocks := strings.Count(text, "```json"); blocks != len(found) || blocks == 0 {
		t.Fatalf("%d blocks of JSON, but %d examples by the client or the server", blocks, len(found))
	}
	shown := map[string]map[Type]bool{"client": {}, "server": {}}
	for _, match := range found {
		direction, data := match[1], []byte(match[2])
		decode, definition := DecodeFromClient, "ClientMessage"
		if direction == "server" {
			decode, definition = DecodeFromServer, "ServerMessage"
		}
		m, err := decode(data)
		if err != nil {
			t.Errorf("%v in %s", err, data)
			continue
		}
		shown[direction][m.Head().Type] = true
		checkExample(t, m, data)
		if err := conforms(t, definition, data); err != nil {
			t.Errorf("%v in %s", err, data)
		}
		if request, ok := m.(Request); ok && direction == "client" {
			if err := request.Validate(); err != nil {
				t.Errorf("%v in %s", err, data)
			}
		}
	}
	for direction, types := range map[string][]Type{"client": TypesFromClient(), "server": TypesFromServer()} {
		for _, messageType := range types {
			if !shown[direction][messageType] {
				t.Errorf("no example of %q by the %s", messageType, direction)
			}
		}
	}
}

// checkExample rejects unknown fields, including those of types with their own decoders: an example
// that is decoded and encoded must stay the same, except for zeros that may be omitted.
func checkExample(t *testing.T, m Message, data []byte) {
	t.Helper()
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(reflect.New(reflect.TypeOf(m).Elem()).Interface()); err != nil {
		t.Errorf("%v in %s", err, data)
	}
	written, err := Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	for text, value := range map[*[]byte]*any{&written: &got, &data: &want} {
		if err := json.Unmarshal(*text, value); err != nil {
			t.Fatal(err)
		}
	}
	if !sameJSON(got, want) {
		t.Errorf("%s is read, and written as %s", data, written)
	}
}

// sameJSON compares the encoded message with the example, which may contain zeros that the encoder
// omits.
func sameJSON(got, want any) bool {
	wantObject, ok := want.(node)
	if !ok {
		wantList, ok := want.([]any)
		gotList, gotOK := got.([]any)
		if !ok || !gotOK {
			return reflect.DeepEqual(got, want)
		}
		return slices.EqualFunc(gotList, wantList, sameJSON)
	}
	gotObject, ok := got.(node)
	if !ok {
		return false
	}
	for name, value := range wantObject {
		other, present := gotObject[name]
		if !present && value != 0.0 || present && !sameJSON(other, value) {
			return false
		}
	}
	for name, value := range gotObject {
		if _, present := wantObject[name]; !present && !isZero(value) {
			return false
		}
	}
	return true
}

func isZero(value any) bool { return value == false || value == 0.0 || value == "" }

var codeRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [^|]+ \\| [^|]+ \\|$")

// TestDocumentCodes compares the tables of error codes with the codes, in order.
func TestDocumentCodes(t *testing.T) {
	_, errorsPart, found := strings.Cut(document(t), "\n## Errors\n")
	if !found {
		t.Fatal("no section on errors")
	}
	errorsPart, _, _ = strings.Cut(errorsPart, "\n## ")
	closingPart, lastingPart, found := strings.Cut(errorsPart, "These codes leave the connection as it was")
	if !found {
		t.Fatal("no second table of errors")
	}
	for part, want := range map[string][]Code{closingPart: closing, lastingPart: nonClosing} {
		var got []Code
		for _, match := range codeRow.FindAllStringSubmatch(part, -1) {
			got = append(got, Code(match[1]))
		}
		if !slices.Equal(got, want) {
			t.Errorf("the table has %v, expected %v", got, want)
		}
	}
}
