package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// fileFlag and fileVariable are the flag and the variable of the configuration file.
const (
	fileFlag     = "config"
	fileVariable = EnvironmentPrefix + "CONFIG"
)

// TokenVariable is the variable of the token of the commands that ask a running server. It is not part of the
// configuration.
const TokenVariable = EnvironmentPrefix + "TOKEN"

// Loader fills one configuration struct.
type Loader struct {
	root  *section
	flags []*flagValue
	// file is the value of --config.
	file string
}

// NewLoader returns a loader for the struct that target points to, which has the defaults. NewLoader panics if the
// struct cannot be a configuration or two keys have the same flag.
func NewLoader(target any) *Loader {
	value := reflect.ValueOf(target)
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("a configuration is a pointer to a struct, not a %T", target))
	}
	l := &Loader{root: readSection(value.Elem(), nil, "", "")}
	taken := map[string]string{fileFlag: "the configuration file"}
	for _, k := range l.root.all() {
		if other, ok := taken[k.flag]; ok {
			panic(fmt.Sprintf("the flag --%s is that of %s and of %s", k.flag, other, k.name()))
		}
		taken[k.flag] = k.name()
	}
	return l
}

// Load fills the struct. Flags have precedence over the environment, the environment over the file, the file over the
// defaults. The environment is in the format of os.Environ; an empty variable counts as absent. The file is that of
// --config, or else of VOLSFU_CONFIG; both may be absent. If the struct has a method Settle, it is called at the end.
func (l *Loader) Load(environment []string) error {
	variables := variablesOf(environment)
	file := l.file
	if file == "" {
		file = variables[fileVariable]
	}
	if file != "" {
		if err := l.readFile(file); err != nil {
			return err
		}
	}
	for _, k := range l.root.all() {
		text := variables[k.environment()]
		if text == "" {
			continue
		}
		value, err := parse(text, k.value.Type())
		if err != nil {
			return fmt.Errorf("variable %s: %w", k.environment(), err)
		}
		k.value.Set(value)
	}
	for _, value := range l.flags {
		if err := value.apply(); err != nil {
			return fmt.Errorf("flag --%s: %w", value.key.flag, err)
		}
	}
	if target, ok := l.root.value.Addr().Interface().(settler); ok {
		target.Settle()
	}
	return nil
}

// UnknownVariables returns the variables of the environment with the prefix that belong to no key. They may be
// misspelt, but container platforms also set such variables for a service named volsfu. The caller decides whether they
// are errors.
func (l *Loader) UnknownVariables(environment []string) []string {
	known := map[string]bool{fileVariable: true, TokenVariable: true}
	for _, k := range l.root.all() {
		known[k.environment()] = true
	}
	var unknown []string
	for name := range variablesOf(environment) {
		if strings.HasPrefix(name, EnvironmentPrefix) && !known[name] {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

func variablesOf(environment []string) map[string]string {
	variables := make(map[string]string, len(environment))
	for _, line := range environment {
		if name, value, ok := strings.Cut(line, "="); ok {
			variables[name] = value
		}
	}
	return variables
}

// settler is a configuration that derives some values from others after all are loaded.
type settler interface{ Settle() }

// validator is a configuration or a section that validates itself.
type validator interface{ Validate() error }

// Validate calls the method Validate of the struct and of each section that has one, and returns all errors, each with
// its section's name.
func (l *Loader) Validate() error { return validate(l.root) }

func validate(s *section) error {
	var all []error
	if checked, ok := s.value.Addr().Interface().(validator); ok {
		if err := checked.Validate(); err != nil {
			if s.name != "" {
				err = fmt.Errorf("%s: %w", s.name, err)
			}
			all = append(all, err)
		}
	}
	for _, sub := range s.sections {
		if err := validate(sub); err != nil {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}
