// Package protocol holds the messages of a provider and the provisioner when
// they are two processes: provider.proto, and the code made from it.
//
// It decides nothing, and knows no Go type of the provisioner's. Only
// provision/plugin imports it; providers written elsewhere copy provider.proto.
package protocol

//go:generate go -C ../../../testscripts/cmd/protocolgenerator run . ../../../provision/provider/protocol ../../fakes/sampleprovider/protocol
