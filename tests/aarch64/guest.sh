#!/bin/busybox sh
# The first process of an emulated machine (machine.py): runs each script of /jobs, in an empty folder, and leaves what
# it said in /out/NAME; the disk takes /out, and the machine is switched off.
/bin/busybox mkdir -p /proc /sys /tmp /dev /root /out
/bin/busybox --install -s /bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
ifconfig lo up 2>/dev/null
for job in /jobs/*; do
    name=${job##*/}
    mkdir "/out/$name"
    rm -rf /tmp/work
    mkdir /tmp/work
    cd /tmp/work || exit
    echo 2 >/proc/sys/kernel/randomize_va_space
    read -r began _ </proc/uptime
    echo "@$name at $began s"
    env -i PATH=/bin LC_ALL=C TZ=UTC HOME=/root OUT="/out/$name" timeout "$(cat /limit)" sh "$job" \
        >"/out/$name/stdout" 2>"/out/$name/stderr" </dev/null
    echo $? >"/out/$name/status"
    read -r ended _ </proc/uptime
    echo "$began $ended" >"/out/$name/seconds"
    cd /
done
tar -C /out -cf /dev/nvme0n1 . && sync && echo "@DONE"
poweroff -f
