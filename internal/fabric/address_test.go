package fabric

import (
	"errors"
	"reflect"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Address{
		"embedded://":               {Embedded: true, RoutePort: 6222},
		"embedded://:0,b":           {Embedded: true, RoutePort: -1, Seeds: []string{"b:6222"}},
		"embedded://:7000":          {Embedded: true, RoutePort: 7000},
		"embedded://a:6300,b":       {Embedded: true, RoutePort: 6300, Seeds: []string{"a:6300", "b:6222"}},
		"embedded://a:6300, :6301,": {Embedded: true, RoutePort: 6301, Seeds: []string{"a:6300"}},
		"embedded://[2001:db8::1]":  {Embedded: true, RoutePort: 6222, Seeds: []string{"[2001:db8::1]:6222"}},
		"nats://a,b:1":              {Servers: []string{"nats://a:4222", "nats://b:1"}},
		"tls://a":                   {Servers: []string{"tls://a:4222"}, TLS: true},
	} {
		got, err := Parse(text)
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s is %+v, %v, expected %+v", text, got, err, want)
		}
	}
	a, err := Parse("nats://ada:p%40s@a:1,b")
	if err != nil || a.User.String() != "ada:p%40s" || len(a.Servers) != 2 {
		t.Errorf("the address with a user is %+v, %v", a, err)
	}
	for _, text := range []string{"", "a:6222", "http://a", "embedded://a:0", "embedded://a:x", "embedded://:1,:2",
		"embedded://a/b", "nats://", "nats://:4222", "nats://a,,b", "embedded://x@a"} {
		if a, err := Parse(text); !errors.Is(err, ErrAddress) {
			t.Errorf("%q is %+v, %v, expected an error", text, a, err)
		}
	}
}
