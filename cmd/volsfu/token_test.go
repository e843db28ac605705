package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/auth"
)

// TestTokensHaveIDs: every token that is minted can be revoked, by an id of its own or by one that is given.
func TestTokensHaveIDs(t *testing.T) {
	key := "first:" + strings.Repeat("k", auth.MinSecretBytes)
	settings := auth.DefaultConfig()
	settings.Keys = []string{key}
	keys, err := auth.NewKeyring(settings)
	if err != nil {
		t.Fatal(err)
	}
	claimsOf := func(arguments ...string) auth.Claims {
		t.Helper()
		var out bytes.Buffer
		cmd := newToken()
		cmd.SetOut(&out)
		cmd.SetArgs(append([]string{"--auth-keys", key}, arguments...))
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		claims, err := keys.Verify(strings.TrimSpace(out.String()), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return claims
	}
	idOf := func(arguments ...string) string { return claimsOf(arguments...).ID }
	if claimsOf().DeniesData || !claimsOf("--data=false").DeniesData {
		t.Error("the flag --data does not set the claim data")
	}
	first, second := idOf(), idOf()
	if len(first) < 20 || first == second {
		t.Errorf("the ids are %q and %q, expected two that nobody guesses", first, second)
	}
	if id := idOf("--id", "ada-1"); id != "ada-1" {
		t.Errorf("the id is %q", id)
	}
}
