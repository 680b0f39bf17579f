package boot

// unpackFull: a server has no room for what dpkg unpacks, only for its package.
func unpackFull(w *world, p *parts) {
	w.on(0, `cp -a /opt/neco /root/room && mount -t tmpfs -o size=90m tmpfs /opt/neco && cp -a /root/room/. /opt/neco/
		dd if=/dev/zero of=/opt/neco/filler bs=1M 2>/dev/null || true`)
	w.publish(*p.next())
	w.stops(p.version, "server 10, step install", "No space left on device")
	w.on(0, "rm /opt/neco/filler")
	w.neco("retry")
	w.succeeds(p.version)
	w.audited()
	w.on(0, `mount --bind / /mnt && rm -rf /mnt/opt/neco/* && cp -a /opt/neco/. /mnt/opt/neco/ && umount /mnt && rm -r /root/room
		umount --lazy /opt/neco && systemctl restart neco-worker neco-updater`)
}
