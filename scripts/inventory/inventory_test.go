package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/test/long"
)

const (
	checkout = "../.."
	pages    = checkout + "/clients/web/public/licenses.txt"
	lock     = checkout + "/clients/web/package-lock.json"
)

// TestIdentify recognises licences in the forms that modules have.
func TestIdentify(t *testing.T) {
	for text, want := range map[string][]string{
		"Permission is hereby granted, free of charge, to any person obtaining a\ncopy of this software": {"MIT"},

		"                Apache License\n           Version 2.0, January 2004": {"Apache-2.0"},

		"// Redistribution and use in source and binary forms, with or without\n// modification": {"BSD-2-Clause"},

		"may be used to endorse\n# or promote products derived from this software": {"BSD-3-Clause"},

		"GNU GENERAL PUBLIC LICENSE Version 3": nil,
	} {
		if got := identify(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, expected %v", text, got, want)
		}
	}
}

// TestUnknownLicences: a module that somebody has to decide about is an error.
func TestUnknownLicences(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  error
	}{
		"none":     {map[string]string{"README": "MIT"}, errNoLicence},
		"source":   {map[string]string{"license.go": "// Apache License Version 2.0"}, errNoLicence},
		"unknown":  {map[string]string{"LICENSE": "GNU AFFERO"}, errUnknownLicence},
		"a notice": {map[string]string{"LICENSE": "Apache License, Version 2.0", "NOTICE": "by somebody"}, nil},
		"below": {map[string]string{"LICENSE": "Apache License, Version 2.0", "part/COPYING": "all rights reserved"},
			errUnknownLicence},
		"alternatives": {map[string]string{"LICENSE": "Apache License, Version 2.0", "licenses/gpl.txt": "GNU"}, nil},
	} {
		dir := t.TempDir()
		for file, text := range test.files {
			path := filepath.Join(dir, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := licencesIn(dir, true); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, expected %v", name, err, test.want)
		}
	}
}

// TestPages: the licences that the viewer serves are those of the libraries in the pages.
func TestPages(t *testing.T) {
	text, err := os.ReadFile(pages)
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := webLibraries(lock)
	if err != nil {
		t.Fatal(err)
	}
	if len(libraries) == 0 {
		t.Error("no library of the web pages was found")
	}
	for _, l := range libraries {
		title := fmt.Sprintf("%s %s (%s)", l.name, l.version, l.identifiers[0])
		if !bytes.Contains(text, []byte("\n"+title+"\n")) {
			t.Errorf("%s lacks the line %q", pages, title)
		}
	}
}

// TestComplete builds programs as a release does, for this machine, and compares their inventory with the modules of
// the packages that the programs are built of.
func TestComplete(t *testing.T) {
	long.Test(t)
	folder := t.TempDir()
	programs := []struct{ name, module string }{{"volsfu", "."}, {"volnet", "."}, {"vollab", "lab"}}
	var paths []string
	for _, p := range programs {
		path := filepath.Join(folder, p.name)
		goCommand(t, p.module, "build", "-buildvcs=false", "-o", path, "./cmd/"+p.name)
		paths = append(paths, path)
	}
	all, err := collect(paths, sources{pages: pages, lock: lock})
	if err != nil {
		t.Fatal(err)
	}
	text := all.notices()
	for _, p := range all.programs {
		at := slices.IndexFunc(programs, func(q struct{ name, module string }) bool { return q.name == p.name })
		want := map[string]bool{}
		const module = "{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{end}}{{end}}"
		list := goCommand(t, programs[at].module, "list", "-deps", "-f", module, "./cmd/"+p.name)
		for _, line := range strings.Fields(list) {
			if !strings.HasPrefix(line, ownModule) {
				path, version, _ := strings.Cut(line, "@")
				want[moduleURL(path, version)] = true
			}
		}
		if len(want) < 10 {
			t.Errorf("%s has %d modules: does the test still read go list?", p.name, len(want))
		}
		for _, purl := range slices.Sorted(maps.Keys(want)) {
			if !slices.Contains(p.uses, purl) {
				t.Errorf("%s: the inventory lacks %s", p.name, purl)
			}
			name, version, _ := strings.Cut(strings.TrimPrefix(purl, "pkg:golang/"), "@")
			if !bytes.Contains(text, []byte("\n"+name+" "+version+" (")) {
				t.Errorf("%s: the notices lack %s %s", p.name, name, version)
			}
		}
		web := slices.ContainsFunc(p.uses, func(u string) bool { return strings.HasPrefix(u, "pkg:npm/three@") })
		if web != hasPages(t, programs[at].module, p.name) {
			t.Errorf("%s has the web pages: the inventory says %t", p.name, web)
		}
	}
	checkBill(t, all)
	slices.Reverse(paths)
	again, err := collect(paths, sources{pages: pages, lock: lock})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.notices(), text) {
		t.Error("the same programs in another order give other notices")
	}
}

// hasPages reports whether a program embeds the web pages.
func hasPages(t *testing.T, module, name string) bool {
	t.Helper()
	list := goCommand(t, module, "list", "-deps", "./cmd/"+name)
	return slices.Contains(strings.Fields(list), ownModule+"/clients/web")
}

// checkBill checks the references within a bill.
func checkBill(t *testing.T, all *inventory) {
	t.Helper()
	text, err := all.bill("v1")
	if err != nil {
		t.Fatal(err)
	}
	var b bill
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{b.Metadata.Component.Ref: true}
	for _, c := range b.Components {
		if known[c.Ref] {
			t.Errorf("%s is listed twice", c.Ref)
		}
		known[c.Ref] = true
		if c.Type == "library" && len(c.Licences) == 0 || c.Type == "application" && len(c.Hashes) != 1 {
			t.Errorf("%+v lacks licences or the digest", c)
		}
	}
	for _, d := range b.Dependencies {
		for _, ref := range append(d.DependsOn, d.Ref) {
			if !known[ref] {
				t.Errorf("the dependencies of %s name %s, which is not a component", d.Ref, ref)
			}
		}
	}
}

// goCommand runs the Go command for a module of the checkout and returns the output.
func goCommand(t *testing.T, module string, arguments ...string) string {
	t.Helper()
	command := exec.Command("go", arguments...)
	command.Dir = filepath.Join(checkout, module)
	command.Env = append(command.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	var complaints strings.Builder
	command.Stderr = &complaints
	text, err := command.Output()
	if err != nil {
		t.Fatalf("go %s: %v: %s", strings.Join(arguments, " "), err, complaints.String())
	}
	return string(text)
}
