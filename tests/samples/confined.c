/* Takes the world away piece by piece: working folder gone, root changed, user changed, privileges
 * dropped; then still allocates, forks and prints. Without root the steps that need it are skipped. */
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    char folder[] = "/tmp/confinedXXXXXX";
    if (!mkdtemp(folder) || chdir(folder) != 0) return 1;
    int above = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (geteuid() == 0) {
        if (chroot(folder) != 0 || unlinkat(above, folder + 5, AT_REMOVEDIR) != 0) return 2;
        if (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0) return 3;
    } else {
        rmdir(folder);
    }
    close(above);
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    printf("no /proc any more: %d\n", access("/etc/passwd", R_OK) != 0 || getuid() != 0);
    for (int i = 0; i < 50; i++) {
        void *p = malloc(300000);
        memset(p, i, 300000);
        free(p);
    }
    pid_t pid = fork();
    if (pid == 0) {
        printf("child\n");
        exit(7);
    }
    int status;
    waitpid(pid, &status, 0);
    printf("done %d\n", WEXITSTATUS(status));
    return 0;
}
