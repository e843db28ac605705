package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// EnvironmentPrefix begins the names of all environment variables.
const EnvironmentPrefix = "VOLSFU_"

// key is one setting: a leaf of the tree of structs.
type key struct {
	// path leads to it in the file, flag is its name on the command line.
	path   []string
	flag   string
	help   string
	secret bool
	// value is the field itself.
	value reflect.Value
}

// name is the key as operators read it, such as "server.listen".
func (k *key) name() string { return strings.Join(k.path, ".") }

// environment is the name of the key's variable.
func (k *key) environment() string {
	return EnvironmentPrefix + strings.ToUpper(strings.ReplaceAll(k.flag, "-", "_"))
}

// section is one struct of the tree.
type section struct {
	name  string
	help  string
	value reflect.Value
	// keys and sections are in the order of the fields; the fields that are keys come first where both are there.
	keys     []*key
	sections []*section
}

// all lists the keys of the section and of those below.
func (s *section) all() []*key {
	keys := append([]*key(nil), s.keys...)
	for _, sub := range s.sections {
		keys = append(keys, sub.all()...)
	}
	return keys
}

// readSection describes a struct. A struct that cannot be a configuration is a mistake in the program, not in its input.
func readSection(value reflect.Value, path []string, name, help string) *section {
	s := &section{name: name, help: help, value: value}
	for i := range value.NumField() {
		field := value.Type().Field(i)
		tag, help := field.Tag.Get("yaml"), field.Tag.Get("help")
		if tag == "-" {
			// The program sets it.
			continue
		}
		if tag == "" || help == "" || !field.IsExported() {
			panic(fmt.Sprintf("field %s of %s is no setting: it has to be exported and have the tags yaml and help", field.Name, value.Type()))
		}
		at := append(append([]string(nil), path...), tag)
		if field.Type.Kind() == reflect.Struct {
			s.sections = append(s.sections, readSection(value.Field(i), at, tag, help))
			continue
		}
		k := &key{path: at, flag: field.Tag.Get("flag"), help: help, secret: field.Tag.Get("secret") == "true", value: value.Field(i)}
		if k.flag == "" {
			k.flag = strings.ReplaceAll(strings.Join(at, "-"), "_", "-")
		}
		if kindOf(k.value.Type()) == "" {
			panic(fmt.Sprintf("field %s of %s is no setting: its type is %s", field.Name, value.Type(), field.Type))
		}
		s.keys = append(s.keys, k)
	}
	return s
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	listType     = reflect.TypeFor[[]string]()
)

// kindOf names what a key's value is, as flags show it; empty for what cannot be one.
func kindOf(t reflect.Type) string {
	switch {
	case t == durationType:
		return "duration"
	case t == listType:
		return "list"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int64:
		return "int"
	case reflect.Float64:
		return "float"
	default:
		return ""
	}
}
