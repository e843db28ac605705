package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// fileFlag and fileVariable name the configuration file.
const (
	fileFlag     = "config"
	fileVariable = EnvironmentPrefix + "CONFIG"
)

// Loader fills one configuration struct.
type Loader struct {
	root  *section
	flags []*flagValue
	// file is the value of --config.
	file string
}

// NewLoader makes a loader of the struct that target points to, which has the defaults. It panics where the struct cannot be a
// configuration or two keys would have one flag.
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

// Load fills the struct: what flags say goes before the environment, the environment before the file, the file before the defaults. The
// environment is in the form of os.Environ; a variable that is empty counts as absent. The file is that of --config, or else of
// VOLSFU_CONFIG; without either there is none. A struct with a method Settle has it called at the end.
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

// UnknownVariables lists the variables of the environment that begin like ours and name no key: misspelt ones, but also those that container
// platforms set for a service of our name, which is why they are no error.
func (l *Loader) UnknownVariables(environment []string) []string {
	known := map[string]bool{fileVariable: true}
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

// settler is a configuration that derives some values from others once all are loaded.
type settler interface{ Settle() }

// validator is a configuration or a section that checks itself.
type validator interface{ Validate() error }

// Validate calls the method Validate of the struct and of each section, where there is one, and gives what all of them say, each with its
// section's name.
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
