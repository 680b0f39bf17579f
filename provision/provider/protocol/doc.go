// Package protocol defines the messages between the provisioner and a provider in a separate process. It
// consists of provider.proto and the code that is generated from it.
//
// It does not use the provisioner's Go types. Providers in other repositories copy provider.proto.
package protocol

//go:generate go -C ../../../testscripts/cmd/protocolgenerator run . ../../../provision/provider/protocol ../../fakes/sampleprovider/protocol
