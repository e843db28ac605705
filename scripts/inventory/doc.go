// Command inventory lists the third parties of released programs: their licences (THIRD_PARTY_NOTICES) and a bill of
// materials in CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/).
//
//	go run ./scripts/inventory -version VERSION -pages FILE -lock FILE -out FOLDER PROGRAM…
//
// The modules are those that the Go command recorded in the programs. Their licences are read from the module cache.
// The same programs give the same files. A module without a licence, or with a licence that this command does not know,
// is an error: somebody has to decide whether the module may be released.
package main
