// Package plugin runs providers as processes of their own: Client is a provider
// whose work an executable does, and such an executable calls Serve.
//
// It knows no provider and no state, and decides nothing about machines. It alone
// imports go-plugin; only multicall/providers imports it. docs/providers.md describes what
// it speaks, for those who write providers in other languages.
package plugin

import (
	goplugin "github.com/hashicorp/go-plugin"
)

// service is the provider's service in go-plugin's table.
const service = "provider"

// cookie is the environment variable that tells an executable that it was started
// as a provider, not by a human; its value is the protocol's name.
const (
	cookie      = "BIJOU_PROVIDER"
	cookieValue = "bijou.provider.v1"
)

// Both sides must have the same.
func handshake() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: cookie, MagicCookieValue: cookieValue}
}
