package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/config"
)

func newToken() *cobra.Command {
	settings := config.DefaultConfig()
	loader := config.NewLoader(&settings)
	var claims auth.Claims
	var data bool
	var validFor time.Duration
	var key string
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Mint an access token with a configured key",
		Long: "Mint an access token, signed with a key of the server's configuration, and print it. The " +
			"configuration is given in the same way as for volsfu serve.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := loader.Load(os.Environ()); err != nil {
				return err
			}
			keys, err := auth.NewKeyring(settings.Auth)
			if err != nil {
				return err
			}
			now := time.Now()
			if claims.ID == "" {
				claims.ID = rand.Text()
			}
			claims.Expires, claims.DeniesData = now.Add(validFor), !data
			token, err := keys.Mint(key, claims, now)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), token)
			return nil
		},
	}
	loader.AddFlags(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&claims.Identity, "identity", "",
		"identity of the participant; if empty, the bearer may choose it")
	flags.StringVar(&claims.Room, "room", "", "room of the participant; if empty, the bearer may choose it")
	flags.BoolVar(&claims.Publish, "publish", true, "grant publishing")
	flags.BoolVar(&claims.Subscribe, "subscribe", true, "grant receiving")
	flags.BoolVar(&data, "data", true, "grant data messages and changes of the participant's own attributes")
	flags.BoolVar(&claims.Admin, "admin", false, "grant access to the console and its API")
	flags.BoolVar(&claims.Edge, "edge", false,
		"grant the connection of the edge of volnet with the name of the identity to a controller")
	flags.DurationVar(&validFor, "valid-for", 24*time.Hour, "validity of the token")
	flags.StringVar(&claims.ID, "id", "", "id by which the token can be revoked; if empty, a random id")
	flags.StringVar(&key, "key", "", "id of the signing key; if empty, the first key")
	return cmd
}
