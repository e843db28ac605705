package config

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzYAML(f *testing.F) {
	f.Add([]byte("name: x\nhouse: {rooms: 3, warm_up: 1h, occupants: [a, 'b,c', \"d\\ne\"]}\n"))
	f.Add([]byte("house: &a {cellar: *a}\n"))
	f.Add([]byte("name: &a [*a]\n"))
	f.Add([]byte("name: !!binary aGVsbG8=\n"))
	f.Add([]byte("back_yard: {trees: 0x10}\n"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Add([]byte("name: |\n  a\n  b\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := defaults()
		l := NewLoader(&s)
		if err := l.readYAML("fuzz.yaml", data); err != nil {
			if !errors.Is(err, ErrUnknownKey) && !errors.Is(err, ErrValue) && !errors.Is(err, ErrFile) ||
				!strings.Contains(err.Error(), "fuzz.yaml") {
				t.Errorf("error is %v", err)
			}
			return
		}
		s.House.Cellar = cellar{}
		again := reprinted(t, &s)
		if !reflect.DeepEqual(normal(again), normal(s)) {
			t.Errorf("%q is read as %+v, and printed and read again as %+v", data, s, again)
		}
	})
}

// FuzzText: the value of a flag or a variable is printed so that the file has the same value.
func FuzzText(f *testing.F) {
	f.Add("plain", "a,b")
	f.Add("yes", "~,null")
	f.Add("# no comment", "- a,{b},[c]")
	f.Add("line\nbreak\u2028 and \u0085", "\t,'\"")
	f.Add("0x1F", "1e3,12:30:45")
	f.Add("ak\u2005", "\u3000a, b")
	f.Fuzz(func(t *testing.T, name, list string) {
		s := defaults()
		l := NewLoader(&s)
		err := l.Load([]string{"VOLSFU_NAME=" + name, "VOLSFU_OCCUPANT=" + list})
		if !utf8.ValidString(name) || !utf8.ValidString(list) {
			if !errors.Is(err, ErrValue) {
				t.Errorf("error is %v, expected ErrValue", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if again := reprinted(t, &s); !reflect.DeepEqual(normal(again), normal(s)) {
			t.Errorf("%+v is printed and read again as %+v", s, again)
		}
	})
}

// reprinted prints the settings and reads them again.
func reprinted(t *testing.T, s *settings) settings {
	t.Helper()
	var text strings.Builder
	if err := NewLoader(s).Print(&text); err != nil {
		t.Fatal(err)
	}
	var again settings
	if err := NewLoader(&again).readYAML("printed", []byte(text.String())); err != nil {
		t.Fatalf("%v in\n%s", err, text.String())
	}
	return again
}

// normal replaces empty lists by nil.
func normal(s settings) settings {
	for _, list := range []*[]string{&s.House.Occupants, &s.House.Cellar.Wine} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	return s
}
