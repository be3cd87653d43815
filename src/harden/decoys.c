/* Written once from random bytes: well-formed OpenSSH frames around noise. None of these keys pairs with
 * anything, and the access key was never issued. */
#include "harden/decoys.h"

static const char rsa_key[] = "-----BEGIN OPENSSH PRIVATE KEY-----\n"
                              "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAABlwAAAAdzc2gtcn\n"
                              "NhAAAAAwEAAQAAAYEAwS2z+w3xRrZKKzKV4Ww8qubtC7u5FYG+DIbjDPbH22i1G/1ix/h+\n"
                              "EQA3vEhRY5vA9M4WWZMz/F86h2vOHqBZJC/Spar8PZLC/+QWXlLiEaO6ppPS830AOltaOz\n"
                              "glnbQ5ozLn70CN1iVAPNajzHoARGpBSUviIvnlxTKnSKY5Bl3R6w9n8dUMOP8F29UTWRus\n"
                              "37Sb99bWIibwCmZ1IHvVbe1WPrqJrg5kO0K/3pvthO7s+rAgD1VFblwBULA5paalazt8Ad\n"
                              "t5M0S/TubJ/0z5Hoo1bfcwhkN5cBO8ee777HMKacbscYbuvxm+Bp/GuQ/oboHr2H0v0Pbj\n"
                              "DMzm+jY8bBU3SIkxpwPTOLxD+9kNNsU8NhQTZGOHY+QTwg4oFgc8g6qzLX0lhfeBEM96ci\n"
                              "mFkQgwk/YQFqnDhc1yplZlZauaoKkz4lXoifHa7lZ57Qg4H1w6Sxq09xbJ36mnt5sOjtLK\n"
                              "p/DHABRcrJ7rKWfsFlCoCe7+ic3LNFEoe/VCPhn4AAAFiFhC7itYQu4rAAAAB3NzaC1yc2\n"
                              "EAAAGBAMEts/sN8Ua2SisyleFsPKrm7Qu7uRWBvgyG4wz2x9totRv9Ysf4fhEAN7xIUWOb\n"
                              "wPTOFlmTM/xfOodrzh6gWSQv0qWq/D2Swv/kFl5S4hGjuqaT0vN9ADpbWjs4JZ20OaMy5+\n"
                              "9AjdYlQDzWo8x6AERqQUlL4iL55cUyp0imOQZd0esPZ/HVDDj/BdvVE1kbrN+0m/fW1iIm\n"
                              "8ApmdSB71W3tVj66ia4OZDtCv96b7YTu7PqwIA9VRW5cAVCwOaWmpWs7fAHbeTNEv07myf\n"
                              "9M+R6KNW33MIZDeXATvHnu++xzCmnG7HGG7r8ZvgafxrkP6G6B69h9L9D24wzM5vo2PGwV\n"
                              "N0iJMacD0zi8Q/vZDTbFPDYUE2Rjh2PkE8IOKBYHPIOqsy19JYX3gRDPenIphZEIMJP2EB\n"
                              "apw4XNcqZWZWWrmqCpM+JV6Inx2u5Wee0IOB9cOksatPcWyd+pp7ebDo7SyqfwxwAUXKye\n"
                              "6yln7BZQqAnu/onNyzRRKHv1Qj4Z+AAAAAMBAAEAAAGA6rp0L0u9+q4HZwbG2VEyZy6V0F\n"
                              "tsK0NnoGLtE2kD7Kp12RalY5AHWefNOBdST68458g9/Z2D3/Drxk4/oVwAZfOwQjs1T+Et\n"
                              "LpIv4N97V4VJKlkrJOFA/gphq7NxlPjv2koEdnQIevW8/XOpw5TZXo2jxI8qBSFBa0+9x3\n"
                              "6tMzpdUVnzYxBptIZmxrQtK+5SyDFFUQJGnJla1K2gvs/H7gMpnguHpNcBn8R3WoqHEImp\n"
                              "kXJJamaHzwaEvQ9bnKf55Phl1q1R7SvXnIMuC5G0FhEKjijGBuyKyQ133BqYp7+Q6OUxPu\n"
                              "BsP4EQiXYlS8nJp2EieFXxm1vFkzLEdSkHZGkKLcckHONB12dqMWdTveru5eKOwaJDSnhk\n"
                              "rWc1KoTnbWSfVSMPtO2D1LJY0Hil4hV/jNvQpFtBB58T5WwB7wIf0PT8d9yfHNWOTQjnTB\n"
                              "k3YuDy/aJyHmDOvSEeEmSH6nI2eO0JVKm/hH0wtBUVKTmkmRB4OljaUKAwNcD5b5jPAAAA\n"
                              "wQDW2opSxwnOe+86Yzx6L4/AcLn/A8tsvYyeCf6qC5+oNbMoYfkg1ZHJE4uBs1ObMxBE50\n"
                              "lCptQc8FuzVjSMbK/eAFuLq5hsDrTOkjGeNgjhWmRG3Eyd+FTE14B8byNvxLe9S2pKVU7b\n"
                              "YpvVaFsp30t/Q8zRdW6BBwEsKKztFNbd6vbJOGjl+NqBtp3iJnpylra5epVnkwf9Bn882Y\n"
                              "ORZz5/tgAeilevBMIN4a7ATDcuns7WmAFgI/z1G8cUtKlR1kUAAADBANMivAOPuOiikFbP\n"
                              "fdxBRGqRmEnlUS3U/s5nHXN1t5tpJy44rms3p1h0YIGzDRjaMeLLmWI0rh8yht3klbXldv\n"
                              "iAlSrbOEZ4k0+bM3DVIbcSPpMQz2lZoRX+snWKYZBWkoV9t8+UmEpgrZEzZ0ZtO3JRTTHG\n"
                              "Lf8hZvcAvaywqEIk1O5Uu2v9CKBpezk9RW4LdXb3LuTnJy3CLI4aEweAxyRyUJJsiVWBwb\n"
                              "Z14dQWW4gZKN+Bp87MtcY/XtbiqzxQnwAAAMEA6Y1T1i7WdNCLww7tkQ1RlVka0rV0cMfb\n"
                              "g1dFkSIr+0YaxpKxMEYe4CXH5G0GgPJuouJPebrtixjXK15Gziy4ApktGDjo2jJ39YzxBo\n"
                              "ycRvb0Zi5Ay+RePuN52VXFCIjGsF6ijZFjPf/PqPh/HpESrlMh5YdoqovaZQES3Uaz3ov5\n"
                              "Z+aazM3smj2mCCf5/TKmG66KiAF8AsSd/w9OL5VWYbqXhfQCIZaHsLlhz5z5T3CclRQDFS\n"
                              "9GUUUkraCe3J2FAAAADGRlcGxveUBidWlsZAECAwQFBg==\n"
                              "-----END OPENSSH PRIVATE KEY-----\n";

static const char ed25519_key[] = "-----BEGIN OPENSSH PRIVATE KEY-----\n"
                                  "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n"
                                  "QyNTUxOQAAACAWBZgDNRnEC1o+EoeORoe9q3GJtKkHTx9iXr+mrqreHAAAAJBQ2vfvUNr3\n"
                                  "7wAAAAtzc2gtZWQyNTUxOQAAACAWBZgDNRnEC1o+EoeORoe9q3GJtKkHTx9iXr+mrqreHA\n"
                                  "AAAEDpHMrcCAPRqfxVFq5CEGdEqSxsgMdZKs4lxjGtkDfyERYFmAM1GcQLWj4Sh45Gh72r\n"
                                  "cYm0qQdPH2Jev6auqt4cAAAADGRlcGxveUBidWlsZAE=\n"
                                  "-----END OPENSSH PRIVATE KEY-----\n";

static const char ecdsa_key[] = "-----BEGIN OPENSSH PRIVATE KEY-----\n"
                                "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAaAAAABNlY2RzYS\n"
                                "1zaGEyLW5pc3RwMjU2AAAACG5pc3RwMjU2AAAAQQSqZPE0+Z03nBtlsEyt39huZsEqoCbx\n"
                                "dZlvcZMLrdfQyfSF2RHQwgeUFVQMnrTC70IbhopxDdwifIm2nwJlI2MvAAAAqNVnJ63VZy\n"
                                "etAAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBKpk8TT5nTecG2Ww\n"
                                "TK3f2G5mwSqgJvF1mW9xkwut19DJ9IXZEdDCB5QVVAyetMLvQhuGinEN3CJ8ibafAmUjYy\n"
                                "8AAAAgLBQSxBVYeK2ukGItMtmaaPoCPfnzsGc3hsE2+XfkqQYAAAAMZGVwbG95QGJ1aWxk\n"
                                "AQIDBA==\n"
                                "-----END OPENSSH PRIVATE KEY-----\n";

static const char aws_credentials[] = "[default]\n"
                                      "aws_access_key_id = AKIARVZBOKS6WBBWSTIN\n"
                                      "aws_secret_access_key = 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\n";

const struct decoy_file decoy_files[] = {
    {".ssh/id_rsa", rsa_key},
    {".ssh/id_ed25519", ed25519_key},
    {".ssh/id_ecdsa", ecdsa_key},
    {".aws/credentials", aws_credentials},
};
const size_t decoy_files_count = sizeof decoy_files / sizeof decoy_files[0];
