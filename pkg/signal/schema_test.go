package signal

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// node is one object of the schema.
type node = map[string]any

// comparison compares the schema with Go types.
type comparison struct {
	t    *testing.T
	defs node
	// enums contains the string constants of each named type, read from the source.
	enums map[string][]string
	seen  map[string]bool
}

func TestSchemaMatchesTypes(t *testing.T) {
	root := parseSchema(t)
	c := &comparison{
		t:     t,
		defs:  root["$defs"].(node),
		enums: stringConstants(t, ".", "../volumetric"),
		seen:  map[string]bool{},
	}
	c.direction("ClientMessage", fromClient)
	c.direction("ServerMessage", fromServer)
	for name := range c.defs {
		if !c.seen[name] {
			t.Errorf("$defs/%s: no Go type uses it", name)
		}
	}
}

// direction compares the list of messages of one direction and each message.
func (c *comparison) direction(name string, known map[Type]func() Message) {
	c.seen[name] = true
	want := map[string]bool{}
	for messageType, blank := range known {
		goType := reflect.TypeOf(blank()).Elem()
		want["#/$defs/"+goType.Name()] = true
		def := c.define(goType)
		if got := def["properties"].(node)["type"].(node)["const"]; got != string(messageType) {
			c.t.Errorf("%s: type is %v, expected %q", goType.Name(), got, messageType)
		}
	}
	got := map[string]bool{}
	for _, item := range c.defs[name].(node)["oneOf"].([]any) {
		got[item.(node)["$ref"].(string)] = true
	}
	if !maps.Equal(got, want) {
		c.t.Errorf(
			"$defs/%s lists %v, expected %v",
			name,
			slices.Sorted(maps.Keys(got)),
			slices.Sorted(maps.Keys(want)),
		)
	}
}

// define compares a struct with the definition of the same name.
func (c *comparison) define(goType reflect.Type) node {
	def, ok := c.defs[goType.Name()].(node)
	if !ok {
		c.t.Fatalf("$defs/%s is missing", goType.Name())
	}
	if c.seen[goType.Name()] {
		return def
	}
	c.seen[goType.Name()] = true
	properties := def["properties"].(node)
	fields := jsonFields(goType)
	var required []string
	for name, field := range fields {
		property, ok := properties[name].(node)
		if !ok {
			c.t.Errorf("$defs/%s: property %q is missing", goType.Name(), name)
			continue
		}
		if !field.optional {
			required = append(required, name)
		}
		c.compare(goType.Name()+"."+name, field.goType, property)
	}
	for name := range properties {
		if _, ok := fields[name]; !ok {
			c.t.Errorf("$defs/%s: property %q is not in the Go type", goType.Name(), name)
		}
	}
	var listed []string
	for _, name := range def["required"].([]any) {
		listed = append(listed, name.(string))
	}
	slices.Sort(listed)
	slices.Sort(required)
	if !slices.Equal(listed, required) {
		c.t.Errorf("$defs/%s: required is %v, expected %v", goType.Name(), listed, required)
	}
	return def
}

// compare compares the Go type of one value with its schema.
func (c *comparison) compare(where string, goType reflect.Type, property node) {
	if goType.Kind() == reflect.Pointer {
		c.compare(where, goType.Elem(), property)
		return
	}
	ref, _ := property["$ref"].(string)
	refName := strings.TrimPrefix(ref, "#/$defs/")
	switch {
	case goType == reflect.TypeFor[Type]():
		return // direction compares the const of each message
	case goType == reflect.TypeFor[Selection]():
		c.seen["Selection"] = true
		c.equal(where, refName, "Selection")
		return
	case goType.Kind() == reflect.Struct:
		c.equal(where, refName, goType.Name())
		c.define(goType)
		return
	case goType.Kind() == reflect.String && goType.Name() != "string":
		c.equal(where, refName, goType.Name())
		c.enum(goType.Name())
		return
	}
	if ref != "" {
		c.seen[refName] = true
		property = c.defs[refName].(node)
	}
	c.simple(where, goType, property)
}

func (c *comparison) simple(where string, goType reflect.Type, property node) {
	got := property["type"]
	switch goType.Kind() {
	case reflect.String:
		c.equal(where, got, "string")
	case reflect.Bool:
		c.equal(where, got, "boolean")
	case reflect.Float32, reflect.Float64:
		c.equal(where, got, "number")
	case reflect.Uint16, reflect.Uint32:
		c.equal(where, got, "integer")
		if least, ok := property["minimum"].(float64); !ok || least < 0 {
			c.t.Errorf("%s: minimum is %v, expected 0 or more", where, property["minimum"])
		}
	case reflect.Int, reflect.Int64:
		c.equal(where, got, "integer")
	case reflect.Map:
		c.equal(where, got, "object")
		c.compare(where+"{}", goType.Elem(), property["additionalProperties"].(node))
	case reflect.Slice:
		if goType.Elem().Kind() == reflect.Uint8 {
			// encoding/json writes bytes in base64.
			c.equal(where, got, "string")
			return
		}
		c.equal(where, got, "array")
		c.compare(where+"[]", goType.Elem(), property["items"].(node))
	case reflect.Array:
		c.equal(where, got, "array")
		c.equal(where, property["minItems"], float64(goType.Len()))
		c.equal(where, property["maxItems"], float64(goType.Len()))
		c.compare(where+"[]", goType.Elem(), property["items"].(node))
	default:
		c.t.Errorf("%s: a field of type %v has no place in a message", where, goType)
	}
}

func (c *comparison) enum(name string) {
	if c.seen[name] {
		return
	}
	c.seen[name] = true
	def, ok := c.defs[name].(node)
	if !ok {
		c.t.Errorf("$defs/%s is missing", name)
		return
	}
	var got []string
	for _, value := range def["enum"].([]any) {
		got = append(got, value.(string))
	}
	want := slices.Clone(c.enums[name])
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		c.t.Errorf("$defs/%s: enum is %v, expected the constants %v", name, got, want)
	}
}

func (c *comparison) equal(where string, got, want any) {
	if got != want {
		c.t.Errorf("%s: schema says %v, expected %v", where, got, want)
	}
}

type jsonField struct {
	goType   reflect.Type
	optional bool
}

// jsonFields returns the fields of a struct as encoding/json sees them.
func jsonFields(goType reflect.Type) map[string]jsonField {
	fields := map[string]jsonField{}
	for i := range goType.NumField() {
		f := goType.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			maps.Copy(fields, jsonFields(f.Type))
			continue
		}
		if !f.IsExported() {
			continue
		}
		fields[name] = jsonField{f.Type, options == "omitempty"}
	}
	return fields
}

// stringConstants returns the string constants of the packages in the folders, by the name of their
// type.
func stringConstants(t *testing.T, folders ...string) map[string][]string {
	t.Helper()
	constants := map[string][]string{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no Go files in %s: %v", folder, err)
		}
		for _, file := range files {
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				spec, ok := n.(*ast.ValueSpec)
				if !ok {
					return true
				}
				name, isName := spec.Type.(*ast.Ident)
				if !isName || len(spec.Values) != 1 {
					return true
				}
				if literal, isLiteral := spec.Values[0].(*ast.BasicLit); isLiteral && literal.Kind == token.STRING {
					value, err := strconv.Unquote(literal.Value)
					if err != nil {
						t.Fatal(err)
					}
					constants[name.Name] = append(constants[name.Name], value)
				}
				return true
			})
		}
	}
	return constants
}

func parseSchema(t *testing.T) node {
	t.Helper()
	var root node
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	if root["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
		t.Fatalf("$schema is %v", root["$schema"])
	}
	return root
}

func TestSchemaIsTheFile(t *testing.T) {
	file, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	got := Schema()
	if string(got) != string(file) {
		t.Fatal("Schema() is not schema.json")
	}
	got[0] = 'x'
	if Schema()[0] == 'x' {
		t.Fatal("Schema() lets the caller change it for others")
	}
}
