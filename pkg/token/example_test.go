package token_test

import (
	"crypto/rand"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/volsfu/volsfu/pkg/token"
)

func ExampleKey_Mint() {
	key, err := token.ParseKey("first:MIKzCT4mEpOAqPZvLGKJ0RiNtcHY7wF3")
	if err != nil {
		log.Fatal(err)
	}
	text, err := key.Mint(token.Claims{
		Room: "lab", Identity: "ada", Publish: true, Subscribe: true, ID: rand.Text(),
		Expires: time.Now().Add(2 * time.Hour),
	}, time.Now())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Count(text, "."), "dots")
	// Output: 2 dots
}
