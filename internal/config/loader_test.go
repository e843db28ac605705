package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// settings has every type, two levels of sections, an overridden flag and a secret.
type settings struct {
	Name  string `yaml:"name" help:"a name"`
	House house  `yaml:"house" help:"a house"`
	Yard  yard   `yaml:"back_yard" help:"a yard"`
}

type house struct {
	Rooms     int           `yaml:"rooms" help:"rooms of the house"`
	Bytes     int64         `yaml:"bytes" help:"bytes of the house"`
	Height    float64       `yaml:"height_m" flag:"height" help:"metres from floor to ceiling"`
	Heated    bool          `yaml:"heated" help:"whether it is heated"`
	Warmup    time.Duration `yaml:"warm_up" help:"time to warm up"`
	Occupants []string      `yaml:"occupants" flag:"occupant" help:"who lives there"`
	Cellar    cellar        `yaml:"cellar" help:"a cellar"`
}

type cellar struct {
	Wine []string `yaml:"wine" secret:"true" help:"content"`
	Code string   `yaml:"code" secret:"true" help:"what opens it"`
}

type yard struct {
	Trees int `yaml:"trees" help:"trees in the yard"`
}

func defaults() settings {
	return settings{
		Name: "villa",
		House: house{Rooms: 4, Bytes: 1 << 40, Height: 2.5, Heated: true, Warmup: 90 * time.Second,
			Occupants: []string{"ada", "grace"}},
	}
}

// load fills the settings from a file's text, an environment and a command line.
func load(t *testing.T, text string, environment, arguments []string) (settings, error) {
	t.Helper()
	s := defaults()
	l := NewLoader(&s)
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	l.AddFlags(flags)
	if text != "" {
		path := filepath.Join(t.TempDir(), "test.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		environment = append(environment, "VOLSFU_CONFIG="+path)
	}
	if err := flags.Parse(arguments); err != nil {
		return s, err
	}
	err := l.Load(environment)
	return s, err
}

func TestPrecedence(t *testing.T) {
	const file = "house:\n  rooms: 5\n"
	environment, arguments := []string{"VOLSFU_HOUSE_ROOMS=6"}, []string{"--house-rooms=7"}
	for _, test := range []struct {
		name        string
		file        string
		environment []string
		arguments   []string
		want        int
	}{
		{"default", "", nil, nil, 4},
		{"file", file, nil, nil, 5},
		{"environment", "", environment, nil, 6},
		{"flag", "", nil, arguments, 7},
		{"environment before file", file, environment, nil, 6},
		{"flag before file", file, nil, arguments, 7},
		{"flag before environment", "", environment, arguments, 7},
		{"flag before both", file, environment, arguments, 7},
		{"flag of the default's value", file, environment, []string{"--house-rooms=4"}, 4},
		{"empty variable", file, []string{"VOLSFU_HOUSE_ROOMS="}, nil, 5},
	} {
		got, err := load(t, test.file, test.environment, test.arguments)
		if err != nil || got.House.Rooms != test.want {
			t.Errorf("%s: got %d, %v, expected %d", test.name, got.House.Rooms, err, test.want)
		}
	}
}

// TestEveryKeyEveryWay sets every key in each of the three ways to the same values.
func TestEveryKeyEveryWay(t *testing.T) {
	want := settings{
		Name: "cabin",
		House: house{
			Rooms: -1, Bytes: 1 << 50, Height: 1e-3, Heated: false, Warmup: 1500 * time.Microsecond,
			Occupants: []string{"eve", "mallory"},
			Cellar:    cellar{Wine: []string{"a", "b"}, Code: "1234"},
		},
		Yard: yard{Trees: 9},
	}
	const file = `
name: cabin
house: {rooms: -1, bytes: 1125899906842624, height_m: 0.001, heated: false,
        warm_up: 1.5ms, occupants: [eve, mallory], cellar: {wine: [a, b], code: "1234"}}
back_yard:
  trees: 9
`
	environment := []string{
		"VOLSFU_NAME=cabin", "VOLSFU_HOUSE_ROOMS=-1", "VOLSFU_HOUSE_BYTES=1125899906842624", "VOLSFU_HEIGHT=0.001",
		"VOLSFU_HOUSE_HEATED=false",
		"VOLSFU_HOUSE_WARM_UP=1.5ms", "VOLSFU_OCCUPANT= eve, mallory,", "VOLSFU_HOUSE_CELLAR_WINE=a,b",
		"VOLSFU_HOUSE_CELLAR_CODE=1234",
		"VOLSFU_BACK_YARD_TREES=9",
	}
	arguments := []string{
		"--name=cabin", "--house-rooms", "-1", "--house-bytes=1125899906842624", "--height=0.001",
		"--house-heated=false", "--house-warm-up=1.5ms",
		"--occupant=eve", "--occupant", "mallory", "--house-cellar-wine=a,b", "--house-cellar-code=1234",
		"--back-yard-trees=9",
	}
	for _, test := range []struct {
		name        string
		file        string
		environment []string
		arguments   []string
	}{{"file", file, nil, nil}, {"environment", "", environment, nil}, {"flags", "", nil, arguments}} {
		got, err := load(t, test.file, test.environment, test.arguments)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, expected %+v", test.name, got, err, want)
		}
	}
}

func TestFileForms(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		check func(settings) bool
	}{
		"empty":         {"# nothing\n", func(s settings) bool { return reflect.DeepEqual(s, defaults()) }},
		"null document": {"---\n", func(s settings) bool { return reflect.DeepEqual(s, defaults()) }},
		"section without keys": {"house:\n  # rooms: 5\n",
			func(s settings) bool { return reflect.DeepEqual(s, defaults()) }},
		"key without value": {"name:\n", func(s settings) bool { return s.Name == "villa" }},
		"empty text":        {"name: ''\n", func(s settings) bool { return s.Name == "" }},
		"empty list": {"house: {occupants: []}\n",
			func(s settings) bool { return len(s.House.Occupants) == 0 }},
		"number as text":        {"name: 8080\n", func(s settings) bool { return s.Name == "8080" }},
		"whole number as float": {"house: {height_m: 3}\n", func(s settings) bool { return s.House.Height == 3 }},
		"anchors": {"name: &n hut\nhouse: {cellar: {code: *n}}\n",
			func(s settings) bool { return s.House.Cellar.Code == "hut" }},
	} {
		got, err := load(t, test.text, nil, nil)
		if err != nil || !test.check(got) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		name        string
		file        string
		environment []string
		arguments   []string
		want        error
		// says are expected parts of the message.
		says []string
	}{
		{"unknown key", "name: x\nroof: y\n", nil, nil, ErrUnknownKey,
			[]string{"test.yaml:2:", `"roof"`, "name, house, back_yard"}},
		{"unknown key in a section", "house:\n  rooms: 4\n  cellar:\n    beer: 1\n", nil, nil, ErrUnknownKey,
			[]string{":4:", `"house.cellar.beer"`, "wine, code"}},
		{"letter case", "Name: x\n", nil, nil, ErrUnknownKey, []string{`"Name"`}},
		{"merge key", "house: {<<: {rooms: 1}}\n", nil, nil, ErrUnknownKey, []string{`"house.<<"`}},
		{"key twice", "name: x\nname: y\n", nil, nil, ErrFile, []string{":2:", `"name"`, "twice"}},
		{"section as value", "house: 7\n", nil, nil, ErrValue, []string{":1:", `"house"`, "keys below it"}},
		{"value as section", "name: {a: b}\n", nil, nil, ErrValue, []string{`"name"`, "text"}},
		{"list at the top", "- a\n", nil, nil, ErrValue, []string{":1:"}},
		{"text for a number", "house:\n  rooms: many\n", nil, nil, ErrValue,
			[]string{":2:", `"house.rooms"`, "a whole number"}},
		{"fraction for a number", "house:\n  rooms: 1.5\n", nil, nil, ErrValue, []string{"a whole number"}},
		{"number too large", "house:\n  rooms: 9223372036854775808\n", nil, nil, ErrValue, []string{"a whole number"}},
		{"not a number", "house:\n  height_m: .nan\n", nil, nil, ErrValue, []string{"a number"}},
		{"duration without unit", "house:\n  warm_up: 15\n", nil, nil, ErrValue, []string{`"house.warm_up"`, "15s"}},
		{"bool", "house:\n  heated: maybe\n", nil, nil, ErrValue, []string{"true or false"}},
		{"text for a list", "house:\n  occupants: ada\n", nil, nil, ErrValue, []string{"a list"}},
		{"binary data", "name: !!binary /w==\n", nil, nil, ErrValue, []string{"text"}},
		{"invalid UTF-8", "", []string{"VOLSFU_NAME=\xff"}, nil, ErrValue, []string{"UTF-8"}},
		{"no YAML", "name: [\n", nil, nil, ErrFile, []string{"test.yaml", "line"}},
		{"two documents", "name: x\n---\nname: y\n", nil, nil, ErrFile, []string{"one document"}},
		{"huge file", "#" + strings.Repeat("x", maxFileBytes), nil, nil, ErrFile, []string{"bytes"}},
		{"variable", "", []string{"VOLSFU_HOUSE_ROOMS=many"}, nil, ErrValue,
			[]string{"VOLSFU_HOUSE_ROOMS", `"many"`, "a whole number"}},
		{"no such file", "", []string{"VOLSFU_CONFIG=/nowhere/test.yaml"}, nil, os.ErrNotExist,
			[]string{"/nowhere/test.yaml"}},
		{"no such file by flag", "", nil, []string{"--config=/nowhere/else.yaml"}, os.ErrNotExist,
			[]string{"/nowhere/else.yaml"}},
		{"flag", "", nil, []string{"--house-warm-up=soon"}, nil, []string{"--house-warm-up", `"soon"`, "a duration"}},
		{"unknown flag", "", nil, []string{"--roof=1"}, nil, []string{"--roof"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := load(t, test.file, test.environment, test.arguments)
			if err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Fatalf("error is %v, expected %v", err, test.want)
			}
			for _, part := range test.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not contain %q", err, part)
				}
			}
		})
	}
}

func TestUnknownVariables(t *testing.T) {
	s := defaults()
	environment := []string{"PATH=/bin", "VOLSFU_NAME=x", "VOLSFU_CONFIG=x", "VOLSFU_SERVICE_HOST=10.0.0.1",
		"VOLSFU_HOUSE_ROMS=3", "=odd", "odd"}
	if got, want := NewLoader(&s).UnknownVariables(environment),
		[]string{"VOLSFU_HOUSE_ROMS", "VOLSFU_SERVICE_HOST"}; !slices.Equal(got, want) {
		t.Errorf("got %v, expected %v", got, want)
	}
}

func TestFlagHelp(t *testing.T) {
	s := defaults()
	s.House.Cellar = cellar{Wine: []string{"rare"}, Code: "4711"}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	NewLoader(&s).AddFlags(flags)
	usage := flags.FlagUsages()
	for _, part := range []string{
		`--name string`, `a name (default "villa")`, `--house-rooms int`, "(default 4)", `--height float`,
		"(default 2.5)", `--house-warm-up duration`,
		"(default 1m30s)", "--occupant list", "(default ada,grace)", "--house-heated ", "(default true)",
		"--config string",
	} {
		if !strings.Contains(usage, part) {
			t.Errorf("usage does not have %q:\n%s", part, usage)
		}
	}
	if strings.Contains(usage, "rare") || strings.Contains(usage, "4711") {
		t.Errorf("usage contains a secret:\n%s", usage)
	}
	if err := flags.Parse([]string{"--house-heated"}); err != nil {
		t.Errorf("a bool without value: %v", err)
	}
}

type checked struct {
	Inner inner `yaml:"inner" help:"inner"`
	Total int   `yaml:"total" help:"total"`
}

type inner struct {
	Part int `yaml:"part" help:"part"`
}

func (c *checked) Settle() { c.Total = c.Inner.Part * 2 }

func (c checked) Validate() error {
	if c.Total > 10 {
		return errors.New("total is too much")
	}
	return nil
}

func (i inner) Validate() error {
	if i.Part < 0 || i.Part > 10 {
		return errors.New("part is wrong")
	}
	return nil
}

func TestSettleAndValidate(t *testing.T) {
	for part, want := range map[string]string{"3": "", "6": "total is too much",
		"11": "total is too much\ninner: part is wrong", "-1": "inner: part is wrong"} {
		var c checked
		l := NewLoader(&c)
		if err := l.Load([]string{"VOLSFU_INNER_PART=" + part}); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := l.Validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, expected %q", part, got, want)
		}
	}
}

// TestMistakes: a struct that cannot be a configuration is detected at program start.
func TestMistakes(t *testing.T) {
	type plain struct {
		A int `yaml:"a" help:"a"`
	}
	for name, target := range map[string]any{
		"no pointer": plain{},
		"no struct":  new(int),
		"no help": &struct {
			A int `yaml:"a"`
		}{},
		"no key": &struct {
			A int `help:"a"`
		}{},
		"type": &struct {
			A map[string]int `yaml:"a" help:"a"`
		}{},
		"flag twice": &struct {
			A int `yaml:"a" help:"a"`
			B int `yaml:"b" flag:"a" help:"b"`
		}{},
		"flag of the file": &struct {
			A int `yaml:"config" help:"a"`
		}{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			NewLoader(target)
		}()
	}
}
