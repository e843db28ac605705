package signal

import (
	"errors"
	"reflect"
	"slices"
	"testing"
)

func FuzzDecodeFromClient(f *testing.F) {
	seed(f)
	f.Add([]byte(`{"type":"set_quality","choices":[{"participant":"a","publication":"b","quality":[2,0,2]}]}`))
	f.Add([]byte(`{"type":"set_quality","choices":[{"participant":"a","publication":"b","quality":null}]}`))
	f.Add([]byte(`{"type":"join","version":"1"}`))
	f.Add([]byte(`{"type":"join","version":1,"receive":true,"max_bps":1,"min_bps":2,"pauses":true}`))
	f.Add([]byte(`{"type":"viewpoint","position":[1e308,-1e308,0],"orientation":[1,1,1,1],"fov":180,"aspect":0}`))
	f.Add([]byte(`{"type":"viewpoint","position":[0,0],"orientation":[0,0,0,null],"fov":"60"}`))
	f.Add(
		[]byte(
			`{"type":"pose","publication":"b","position":[0,0,0],"orientation":[0,0,0,1],` +
				`"boxes":[{"min":[1,1,1],"max":[0,0,0]}],"scale":-1}`,
		),
	)
	f.Add([]byte(`{"type":"limits","max_bps":-1}`))
	f.Add([]byte(`{"type":"uplink","estimate_bps":1e13,"gave_up":null}`))
	f.Add(
		[]byte(
			`{"type":"frame_times","host":"sender","clock":{"source":"ptp"},` +
				`"tracks":[{"publication":"b","frames":[null,[1,2,3]]},{}],"dropped":-1}`,
		),
	)
	f.Add([]byte(`{"type":"frame_times","host":"sender","clock":{"source":"estimated","offset_ns":1e30},"tracks":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := decodeAgain(t, data, DecodeFromClient)
		if m == nil {
			return
		}
		if set, ok := m.(*SetQuality); ok {
			for _, choice := range set.Choices {
				if !slices.IsSorted(choice.Quality.Qualities) {
					t.Errorf("qualities %v are not ascending", choice.Quality.Qualities)
				}
			}
		}
		err := m.(Request).Validate()
		var reply *Error
		if err != nil && (!errors.As(err, &reply) || reply.Code == CodeInternal || reply.ID != m.Head().ID) {
			t.Errorf("Validate gave %#v", err)
		}
	})
}

func FuzzDecodeFromServer(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) { decodeAgain(t, data, DecodeFromServer) })
}

func seed(f *testing.F) {
	for _, m := range samples() {
		data, err := Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"type":"dance","id":"1"}`))
	f.Add([]byte(`[{"type":"leave"}]`))
	f.Add([]byte(`{"type":"leave","id":7}`))
}

// decodeAgain decodes data. On success it checks that encoding and decoding the message preserves
// it, and returns the message; otherwise it returns nil.
func decodeAgain(t *testing.T, data []byte, decode func([]byte) (Message, error)) Message {
	m, err := decode(data)
	if err != nil {
		if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrUnknownType) && !errors.Is(err, ErrInvalid) &&
			!errors.Is(err, ErrTooLarge) {
			t.Errorf("unexpected error %v", err)
		}
		if (m == nil) != errors.Is(err, ErrMalformed) {
			t.Errorf("message is %v with error %v", m, err)
		}
		return nil
	}
	written, err := Encode(m)
	if err != nil {
		t.Fatalf("%#v is read, but not written: %v", m, err)
	}
	again, err := decode(written)
	if errors.Is(err, ErrTooLarge) {
		// Some characters are longer in the encoded form than the limit on received messages
		// allows.
		return m
	}
	if err != nil {
		t.Fatalf("%s is written, but not read: %v", written, err)
	}
	rewritten, err := Encode(again)
	if err != nil || string(rewritten) != string(written) || again.Head().Type != m.Head().Type {
		t.Fatalf("%s is written, then %s, %v", written, rewritten, err)
	}
	if reflect.TypeOf(again) != reflect.TypeOf(m) {
		t.Fatalf("read a %T, then a %T", m, again)
	}
	return m
}
