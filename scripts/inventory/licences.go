package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licence is a file with a licence or a notice.
type licence struct{ file, text string }

var (
	// licenceFile matches the names of licences, and noticeFile those of texts beside them. Files with the endings of
	// sources are no licences.
	licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying)([-._].*)?$`)
	noticeFile  = regexp.MustCompile(`(?i)^(copyright|notice|patents)([-._].*)?$`)
	sourceFile  = regexp.MustCompile(`(?i)\.(go|s|c|h|py|sh|js|html|yml|yaml|json)$`)
)

var (
	errNoLicence      = errors.New("no file with a licence")
	errUnknownLicence = errors.New("a licence that is not known")
)

// licencesIn returns the licences in a folder, with deep also in the folders below, and their SPDX identifiers. The
// files of a folder named licenses are texts to which a licence refers, some as alternatives: not all need to be known.
func licencesIn(dir string, deep bool) ([]licence, []string, error) {
	var all []licence
	var identifiers []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != dir && (!deep || name == "testdata" || strings.HasPrefix(name, ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		isLicence := licenceFile.MatchString(name)
		referred := strings.EqualFold(filepath.Base(filepath.Dir(path)), "licenses")
		if !isLicence && !noticeFile.MatchString(name) && !referred || sourceFile.MatchString(name) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		l := licence{filepath.ToSlash(file), string(text)}
		some := identify(l.text)
		if len(some) == 0 && isLicence {
			return fmt.Errorf("%w: %s", errUnknownLicence, path)
		}
		all, identifiers = append(all, l), append(identifiers, some...)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(identifiers)
	identifiers = slices.Compact(identifiers)
	if len(identifiers) == 0 {
		return nil, nil, fmt.Errorf("%w in %s", errNoLicence, dir)
	}
	return all, identifiers, nil
}

// marks are texts by which licences are recognised. Licences with obligations beyond their text (the GPL's family) are
// left out on purpose.
var marks = []struct{ identifier, text string }{
	{"Apache-2.0", "Apache License Version 2.0"},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy of this software"},
	{"BSD-3-Clause", "may be used to endorse or promote products derived from this software"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is"},
	{"OFL-1.1", "SIL OPEN FONT LICENSE Version 1.1"},
	{"FTL", "The FreeType Project LICENSE"},
	{"FTL", "Use of the Freetype-Go software is subject to your choice of exactly one of the following two licenses"},
	{"CC0-1.0", "CC0 1.0 Universal"},
	{"CC-BY-4.0", "Creative Commons Attribution 4.0 International"},
	{"Unlicense", "This is free and unencumbered software released into the public domain"},
}

var space = regexp.MustCompile(`[\s,*#/]+`)

// plain returns a text for comparison: one blank between words, without commas and signs of comments.
func plain(text string) string { return strings.ToLower(space.ReplaceAllString(text, " ")) }

// identify returns the SPDX identifiers of a text, none if no licence is recognised.
func identify(text string) []string {
	var found []string
	text = plain(text)
	for _, m := range marks {
		if strings.Contains(text, plain(m.text)) {
			found = append(found, m.identifier)
		}
	}
	if strings.Contains(text, "redistribution and use in source and binary forms") &&
		!slices.Contains(found, "BSD-3-Clause") {
		found = append(found, "BSD-2-Clause")
	}
	return found
}
