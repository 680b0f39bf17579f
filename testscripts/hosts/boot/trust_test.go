package boot

import (
	"os"

	"bijou/testscripts/fakes/github"
)

// sums adds the file of sums and its signature to a release, as its publisher does.
func (w *world) sums(p parts, sign func(data []byte) []byte) {
	w.t.Helper()
	deb := "neco_" + p.version + "_amd64.deb"
	data, err := os.ReadFile(w.path(deb))
	w.check(err)
	sums := github.Sums(map[string][]byte{deb: data})
	w.write("SHA256SUMS", string(sums), 0o644)
	w.write("SHA256SUMS.minisig", string(sign(sums)), 0o644)
	for _, name := range []string{"SHA256SUMS", "SHA256SUMS.minisig"} {
		w.put(3, w.path(name), w.tag(p)+"/"+name)
	}
}

// trusted checks releases while a key is configured. A release that its owner has signed succeeds, in both of
// minisign's formats. A forged release does not succeed until the publisher has corrected it: the leader does
// not begin an update to it, and workers that are told to install it refuse.
func trusted(w *world, p *parts) {
	w.hears()
	publisher, forger := github.NewSigner("publisher"), github.NewSigner("forger")
	w.neco("config set minisign-public-key " + publisher.PublicKey())

	w.offer(*p.next())
	w.sums(*p, forger.Sign)
	w.announce(*p)
	w.refuses(p.version, "cannot trust SHA256SUMS", "it was made with key")
	w.sums(*p, publisher.Sign)
	w.announce(*p)
	w.succeeds(p.version)

	w.offer(*p.next())
	w.sums(*p, publisher.Sign)
	w.on(3, "cd "+w.tag(*p)+" && sed -i 's/^./0/; t; s/^0/1/' SHA256SUMS && echo >>SHA256SUMS")
	w.announce(*p)
	w.refuses(p.version, "cannot trust SHA256SUMS", "the data differs from the signed data")
	w.sums(*p, publisher.Sign)
	w.spoils(*p, func() {
		w.sums(*p, forger.SignPlain)
		w.announce(*p)
	})
	w.stops(p.version, "server 1", "step install", "cannot trust SHA256SUMS", "it was made with key")
	w.sums(*p, publisher.SignPlain)
	w.announce(*p)
	w.neco("recover")
	w.succeeds(p.version)
	w.neco("config unset minisign-public-key")
}

// wrongPackage serves a different package, or a web page, in place of a package: first the release's own,
// then a component's.
func wrongPackage(w *world, p *parts) {
	for _, wrong := range []struct{ fault, reason string }{{"forged", "the sum is "}, {"page", "the file has "}} {
		w.offer(*p.next())
		w.spoils(*p, func() { w.fault(wrong.fault) })
		w.stops(p.version, "server 1", "step install", "neco_"+p.version+"_amd64.deb: "+wrong.reason, "as published")
		w.fault("none")
		w.neco("retry")
		w.succeeds(p.version)
	}
	p.next()
	p.deb = p.version + ".1"
	w.offer(*p)
	file := "etcdpasswd_" + p.deb + ".deb"
	w.on(3, "cd /srv/files && mv "+file+" right && echo '<h1>Whoa there!</h1>' >"+file)
	w.announce(*p)
	w.stops(p.version, "server 1", "step etcdpasswd/update", file+": the sum is ", "as published")
	w.on(3, "cd /srv/files && mv right "+file)
	w.neco("retry")
	w.succeeds(p.version)
}
