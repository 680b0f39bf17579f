package boot

// unpackFull leaves a server enough space for its package, but not for the files that dpkg unpacks.
func unpackFull(w *world, p *parts) {
	w.on(0, `cp -a /usr/lib/bijou /root/room && mount -t tmpfs -o size=90m tmpfs /usr/lib/bijou && cp -a /root/room/. /usr/lib/bijou/
		dd if=/dev/zero of=/usr/lib/bijou/filler bs=1M 2>/dev/null || true`)
	w.publish(*p.next())
	w.stops(p.version, "server 10, step install", "No space left on device")
	w.on(0, "rm /usr/lib/bijou/filler")
	w.neco("retry")
	w.succeeds(p.version)
	w.audited()
	w.on(0, `mount --bind / /mnt && rm -rf /mnt/usr/lib/bijou/* && cp -a /usr/lib/bijou/. /mnt/usr/lib/bijou/ && umount /mnt && rm -r /root/room
		umount --lazy /usr/lib/bijou && systemctl restart neco-worker neco-updater`)
}
