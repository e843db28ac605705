package control

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		order Order
		want  string // part of the error; "" if valid
	}{
		"copies":              {Order{Rule: "conference", Copies: "auto"}, ""},
		"copies of all rules": {Order{Copies: "fibre,lte"}, ""},
		"copies for a time":   {Order{Rule: "a", Copies: "all", For: Duration(time.Hour)}, ""},
		"trigger":             {Order{Rule: "a", Trigger: Start, For: Duration(minFor)}, ""},
		"stop":                {Order{Rule: "a", Trigger: Stop}, ""},
		"nothing":             {Order{Rule: "a"}, "expected copies or trigger"},
		"both":                {Order{Rule: "a", Copies: "all", Trigger: Start}, "got both"},
		"unknown trigger":     {Order{Rule: "a", Trigger: "begin"}, `trigger is "begin"`},
		"long rule":           {Order{Rule: strings.Repeat("r", 65), Copies: "all"}, "1 to 64 printable"},
		"rule with a slash":   {Order{Rule: "a/b", Copies: "all"}, "printable"},
		"control character":   {Order{Rule: "a\n", Copies: "all"}, "printable"},
		"long copies":         {Order{Rule: "a", Copies: strings.Repeat("p,", 300)}, "600 bytes"},
		"negative time":       {Order{Rule: "a", Copies: "all", For: -1}, "expected 100ms to 24h"},
		"two days":            {Order{Rule: "a", Copies: "all", For: Duration(48 * time.Hour)}, "48h0m0s"},
		"stop for a time":     {Order{Rule: "a", Trigger: Stop, For: Duration(time.Second)}, "has no limit"},
		"reset for a time":    {Order{Rule: "a", Copies: Configured, For: Duration(time.Second)}, "has no limit"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.order.Validate()
			switch {
			case test.want == "":
				if err != nil {
					t.Error(err)
				}
			case !errors.Is(err, ErrOrder) || !strings.Contains(err.Error(), test.want):
				t.Errorf("the error is %v, expected an order refused with %q", err, test.want)
			}
		})
	}
}

func TestReplaces(t *testing.T) {
	copies := func(rule string) Order { return Order{Rule: rule, Copies: "all"} }
	trigger := func(rule string) Order { return Order{Rule: rule, Trigger: Start} }
	for _, test := range []struct {
		later, earlier Order
		want           bool
	}{
		{copies("a"), copies("a"), true},
		{copies("a"), copies("b"), false},
		{copies(""), copies("b"), true},
		{copies("a"), copies(""), false},
		{copies("a"), trigger("a"), false},
		{trigger(""), trigger("a"), true},
	} {
		if got := test.later.Replaces(test.earlier); got != test.want {
			t.Errorf("%+v replaces %+v: %v", test.later, test.earlier, got)
		}
	}
}

func TestOrderJSON(t *testing.T) {
	const text = `{"rule":"conference","trigger":"start","for":"10s"}`
	var o Order
	if err := decode(strings.NewReader(text), &o); err != nil {
		t.Fatal(err)
	}
	if want := (Order{Rule: "conference", Trigger: Start, For: Duration(10 * time.Second)}); o != want {
		t.Errorf("got %+v, expected %+v", o, want)
	}
	if back, err := json.Marshal(o); err != nil || string(back) != text {
		t.Errorf("the order is %s, %v, expected %s", back, err, text)
	}
	for text, want := range map[string]string{
		`{"rule":"a","for":10}`:            `for is 10, expected a text such as "10s"`,
		`{"rule":"a","for":"soon"}`:        `for is "soon", expected a duration`,
		`{"rule":"a","copy":"all"}`:        `unknown field "copy"`,
		`{"rule":"a"} {}`:                  "expected one JSON document",
		`{"rule":1}`:                       "rule",
		`["a"]`:                            "array",
		``:                                 "EOF",
		`{"rule":"a","copies":"all"`:       "EOF",
		`{"rule":"a","copies":["a", "b"]}`: "copies",
	} {
		if err := decode(strings.NewReader(text), new(Order)); !errors.Is(err, ErrRequest) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, expected %q", text, err, want)
		}
	}
}

// FuzzOrder checks that any bytes are an error, or an order that has a form of its own.
func FuzzOrder(f *testing.F) {
	f.Add([]byte(`{"rule":"conference","trigger":"start","for":"10s"}`))
	f.Add([]byte(`{"copies":"fibre,lte"}`))
	f.Add([]byte(`{"for":"-9223372036854775808ns"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var o, again Order
		if decode(strings.NewReader(string(data)), &o) != nil || o.Validate() != nil {
			return
		}
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &again); err != nil || again != o {
			t.Errorf("%s becomes %+v, %v", text, again, err)
		}
	})
}
