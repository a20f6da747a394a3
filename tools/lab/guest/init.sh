#!/bin/sh
# Loads the disk's driver and continues on the disk.
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
for module in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk; do
    [ -e "/modules/$module.ko" ] && insmod "/modules/$module.ko"
done
while ! [ -b /dev/vda ]; do sleep 0.1; done
mount -t ext4 /dev/vda /disk
mount --move /proc /disk/proc
mount --move /sys /disk/sys
mount --move /dev /disk/dev
exec switch_root /disk /bin/sh /main.sh
