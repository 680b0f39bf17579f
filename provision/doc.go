// Package provision makes sure that every machine in state has an agent on a
// live instance, and that dead machines and stray instances go away.
//
// Plan decides, on plain values; Run reads, asks and acts, as long as it is the
// leader. How an instance is made is the provider's business (provision/provider).
// Only multicall imports it.
package provision
